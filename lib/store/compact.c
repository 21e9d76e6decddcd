/* Rewriting everything once. Automatic compactions leave operands unmerged above the level where their set
 * is, so the size on disk depends on when one looks; after this it does not. */
#include "store/store_impl.h"

void dd_store_compact(struct dd_store *s)
{
    rocksdb_compactoptions_t *o = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(o, 0); /* others go on meanwhile */
    rocksdb_compactoptions_set_bottommost_level_compaction(o, 3); /* kForceOptimized: the last level, once */
    for (size_t i = 0; i < s->rocks.families; i++)
        rocksdb_compact_range_cf_opt(s->rocks.db, s->rocks.family[i], o, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(o);
}
