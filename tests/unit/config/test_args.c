#include "config/args.h"
#include "suites.h"
#include "support.h"

struct parsed {
    enum dd_err err;
    struct dd_args args;
    struct dd_buf errors; /* ends in NUL */
};

static struct parsed parse(const char *const *argv)
{
    struct parsed p = {0};
    int argc = 0;
    while (argv[argc])
        argc++;
    p.err = dd_args_parse(argc, (char *const *)argv, &p.args, &p.errors);
    dd_buf_add_u8(&p.errors, 0);
    return p;
}

static void parsed_free(struct parsed *p)
{
    dd_args_reset(&p->args);
    dd_buf_free(&p->errors);
}

START_TEST(sources)
{
    const char *argv[] = {"dedupd", "--set", "a=1", "--config", "f.json", "--set=b.c=x=y", "--set=", NULL};
    struct parsed p = parse(argv);
    ck_assert_ok(p.err);
    ck_assert(p.args.action == DD_ARGS_RUN);
    struct dd_config_sources from = dd_args_sources(&p.args, NULL);
    ck_assert_str_eq(from.file, "f.json");
    ck_assert_uint_eq(from.set_count, 3);
    ck_assert_str_eq(from.sets[0], "a=1");
    ck_assert_str_eq(from.sets[1], "b.c=x=y");
    ck_assert_str_eq(from.sets[2], "");
    parsed_free(&p);
}
END_TEST

START_TEST(nothing)
{
    const char *argv[] = {"dedupd", NULL};
    struct parsed p = parse(argv);
    ck_assert_ok(p.err);
    ck_assert(p.args.action == DD_ARGS_RUN && !p.args.file && p.args.set_count == 0);
    parsed_free(&p);
}
END_TEST

static const struct {
    const char *flag;
    enum dd_args_action action;
} actions[] = {
    {"--check-config", DD_ARGS_CHECK_CONFIG},
    {"--print-config", DD_ARGS_PRINT_CONFIG},
    {"--help", DD_ARGS_HELP},
    {"-h", DD_ARGS_HELP},
    {"--version", DD_ARGS_VERSION},
    {"--print-reference", DD_ARGS_PRINT_REFERENCE},
};

START_TEST(action)
{
    const char *argv[] = {"dedupd", "--config=f", actions[_i].flag, "--check-config", NULL};
    struct parsed p = parse(argv);
    ck_assert_ok(p.err);
    ck_assert(p.args.action == actions[_i].action);
    ck_assert_str_eq(p.args.file, "f");
    parsed_free(&p);
    struct dd_buf help = {0};
    dd_args_help(&help);
    dd_buf_add_u8(&help, 0);
    ck_assert_contains((char *)help.data, actions[_i].flag);
    dd_buf_free(&help);
}
END_TEST

static const struct {
    const char *argv[6], *text;
} bad[] = {
    {{"dedupd", "--config"}, "--config: needs a file\n"},
    {{"dedupd", "--config="}, "--config: needs a file\n"},
    {{"dedupd", "--config", ""}, "--config: needs a file\n"},
    {{"dedupd", "--config", "a", "--config", "b"}, "--config: is there twice\n"},
    {{"dedupd", "--set"}, "--set: needs name=value\n"},
    {{"dedupd", "--conf", "a"}, "--conf: unknown argument; see --help\na: unknown argument"},
    {{"dedupd", "--configs=a"}, "--configs=a: unknown argument"},
    {{"dedupd", "file.json"}, "file.json: unknown argument"},
    {{"dedupd", "--help=x"}, "--help=x: unknown argument"},
    {{"dedupd", ""}, "unknown argument"},
    {{"dedupd", "--"}, "--: unknown argument"},
};

START_TEST(refused)
{
    struct parsed p = parse(bad[_i].argv);
    ck_assert_err(p.err, DD_INVALID);
    ck_assert_contains((char *)p.errors.data, bad[_i].text);
    parsed_free(&p);
}
END_TEST

START_TEST(no_arguments_at_all)
{
    const char *argv[] = {NULL};
    struct parsed p = parse(argv);
    ck_assert_ok(p.err);
    parsed_free(&p);
}
END_TEST

Suite *suite_args(void)
{
    Suite *s = suite_create("config args");
    TCase *tc = case_of(s, "args");
    tcase_add_test(tc, sources);
    tcase_add_test(tc, nothing);
    tcase_add_loop_test(tc, action, 0, (int)(sizeof actions / sizeof *actions));
    tcase_add_loop_test(tc, refused, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tc, no_arguments_at_all);
    return s;
}
