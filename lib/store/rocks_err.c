#include "store/rocks.h"

#include "base/log.h"

/* Compared in this order; the first that begins the text, or for `anywhere` is contained in it, decides. */
static const struct {
    const char *part;
    bool anywhere;
    enum dd_err err;
} classes[] = {
    {"Result incomplete", false, DD_PENDING},
    {"No space left", true, DD_DISK_FULL},
    {"While lock file", true, DD_LOCKED},
    {"lock hold by current process", true, DD_LOCKED},
    {"Corruption", false, DD_CORRUPT},
    {"Invalid argument", false, DD_INVALID},
    {"NotFound", false, DD_NOT_FOUND},
    {"Resource busy", false, DD_BUSY},
    {"Shutdown in progress", false, DD_SHUTDOWN},
    {"Operation aborted", false, DD_SHUTDOWN},
};

enum dd_err dd_rocks_err(const char *text)
{
    if (!text) return DD_OK;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const char *at = strstr(text, classes[i].part);
        if (at && (at == text || classes[i].anywhere)) return classes[i].err;
    }
    return DD_IO;
}

enum dd_err dd_rocks_take(char *text)
{
    enum dd_err err = dd_rocks_err(text);
    rocksdb_free(text);
    return err;
}

enum dd_err dd_rocks_take_logged(char *text, const char *event, const char *what)
{
    if (text) dd_error(event, "what=\"%s\" error=\"%s\"", what, text);
    return dd_rocks_take(text);
}
