/* The population itself: who reads how much. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "filters_number.h"
#include "filters_population.h"

#define MEDIAN      60.0
#define SIGMA_USER  1.4
#define SIGMA_MONTH 0.35

struct dd_slice dd_population_name(uint32_t user, char out[DD_POPULATION_NAME])
{
    snprintf(out, DD_POPULATION_NAME, "user-%010u", user);
    return dd_slice_str(out);
}

uint32_t dd_population_user(struct dd_slice name, uint32_t users)
{
    char text[DD_POPULATION_NAME] = {0};
    if (name.len != sizeof text - 1) return UINT32_MAX;
    memcpy(text, name.ptr, name.len);
    unsigned long user = strtoul(text + 5, NULL, 10);
    return user < users ? (uint32_t)user : UINT32_MAX;
}

uint32_t dd_population_items(const struct dd_population *p, uint32_t user, int month)
{
    double level = SIGMA_USER * dd_normal_at(p->seed, user, 0);
    double varied = SIGMA_MONTH * dd_normal_at(p->seed, user, (uint64_t)month + 2);
    double items = round(MEDIAN * exp(level + varied));
    return (uint32_t)fmin(DD_POPULATION_TAIL, fmax(1, items));
}

uint64_t dd_population_all_items(const struct dd_population *p)
{
    uint64_t sum = 0;
    for (uint32_t user = 0; user < p->users; user++)
        for (int month = 0; month < DD_POPULATION_MONTHS; month++)
            sum += dd_population_items(p, user, month);
    return sum;
}

struct dd_period dd_population_period(int month)
{
    return (struct dd_period){DD_PERIOD_MONTH, 2026 * 12 + month};
}

void dd_population_fingerprints(const struct dd_population *p, uint32_t user, int month, uint32_t from,
                                uint32_t n, uint32_t *out)
{
    char name[DD_POPULATION_NAME];
    uint64_t seed = dd_hash_user_seed(p->secret, dd_slice_str("home"), dd_population_name(user, name));
    for (uint32_t i = 0; i < n; i++) {
        uint64_t item = ((uint64_t)month + 1) << 32 | (from + i);
        out[i] = dd_hash_fingerprint(seed, dd_slice_of(&item, sizeof item));
    }
}
