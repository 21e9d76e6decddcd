#include "identity.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/log.h"

#define ALIVE_MS                                                                                             \
    30000 /* without a sign of life for so long a copy may take over; the wheel beats at a third */

static void read_machine_id(char *out, size_t size)
{
    FILE *f = fopen("/etc/machine-id", "r");
    out[0] = 0;
    if (f) {
        if (!fgets(out, (int)size, f)) out[0] = 0;
        fclose(f);
    }
    out[strcspn(out, "\r\n\t ")] = 0;
    if (!out[0]) snprintf(out, size, "unknown-machine");
}

enum dd_err dd_identity_make(const char *data_dir, struct dd_identity *out)
{
    uint8_t random[16];
    char machine[64];
    struct stat st;
    *out = (struct dd_identity){0};
    if (stat(data_dir, &st)) return DD_IO;
    enum dd_err err = dd_random(random, sizeof random);
    if (err != DD_OK) return err;
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(out->boot_id + 2 * i, 3, "%02x", random[i]);
    read_machine_id(machine, sizeof machine);
    snprintf(out->place, sizeof out->place, "%s:%llx:%llx", machine, (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    out->boot = (struct dd_hot_boot){
        .boot_id = out->boot_id, .place = out->place, .admin = out->admin, .alive_ms = ALIVE_MS};
    return DD_OK;
}

enum dd_err dd_identity_register(const struct dd_identity *id, struct dd_hot *hot)
{
    struct dd_hot_staging *staging;
    struct dd_hot_holder other;
    enum dd_err err = dd_hot_staging_open(hot, &staging);
    if (err != DD_OK) return err;
    err = dd_hot_boot_register(staging, &id->boot, &other);
    if (err == DD_LOCKED)
        dd_error("store.held_by_another",
                 "store=%s place=%s admin=%s hint=\"a process with a copy of this data directory is alive; "
                 "stop it, or wait "
                 "%d s after it died\"",
                 other.store_id, other.place, other.admin, ALIVE_MS / 1000);
    else if (err != DD_OK)
        dd_warn("store.not_registered", "error=\"%s\"", dd_hot_staging_error(staging));
    dd_hot_staging_close(staging);
    return err == DD_LOCKED ? DD_LOCKED : DD_OK;
}
