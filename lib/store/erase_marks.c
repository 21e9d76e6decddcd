#include "store/erase_marks.h"

#include <stdlib.h>

enum dd_err dd_marks_create(struct dd_erase_marks **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? DD_OK : DD_NO_MEMORY;
}

void dd_marks_destroy(struct dd_erase_marks *m)
{
    free(m);
}

void dd_marks_add(struct dd_erase_marks *m, uint64_t key_hash, uint64_t number)
{
    struct dd_erase_mark *bucket = m->mark[key_hash % DD_MARK_BUCKETS], *oldest = bucket;
    for (unsigned i = 0; i < DD_MARK_WAYS; i++) {
        if (bucket[i].number != 0 && bucket[i].key_hash == key_hash) {
            bucket[i].number = number;
            return;
        }
        if (bucket[i].number < oldest->number) oldest = &bucket[i];
    }
    if (oldest->number > m->floor) m->floor = oldest->number;
    *oldest = (struct dd_erase_mark){key_hash, number};
}

enum dd_mark_verdict dd_marks_judge(const struct dd_erase_marks *m, uint64_t key_hash, uint64_t read_number)
{
    const struct dd_erase_mark *bucket = m->mark[key_hash % DD_MARK_BUCKETS];
    for (unsigned i = 0; i < DD_MARK_WAYS; i++)
        if (bucket[i].number > read_number && bucket[i].key_hash == key_hash) return DD_MARK_STRIP;
    return read_number < m->floor ? DD_MARK_READ_AGAIN : DD_MARK_KEEP;
}
