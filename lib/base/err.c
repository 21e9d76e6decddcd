#include "base/err.h"

#include <stddef.h>

static const struct {
    const char *name, *text;
} table[] = {
#define X(id, name, text) [DD_##id] = {name, text},
    DD_ERR_MAP(X)
#undef X
};

const char *dd_err_name(enum dd_err err)
{
    return (size_t)err < sizeof table / sizeof *table ? table[err].name : "unknown";
}

const char *dd_err_text(enum dd_err err)
{
    return (size_t)err < sizeof table / sizeof *table ? table[err].text : "unknown error";
}
