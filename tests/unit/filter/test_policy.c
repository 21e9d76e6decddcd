/* What a policy may say, and that a refusal names the field and the allowed range. */
#include "helper.h"

#include <math.h>
#include <stdio.h>

static const double bad_fpr[] = {0,   -0.001,   1,         2,      0.0501, 9.9e-8,
                                 NAN, INFINITY, -INFINITY, 9.3e18, 0x1p63, -0.0};

START_TEST(fpr_out_of_range)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct dd_buf out = {0};
    char why[200] = "";
    p.fpr = bad_fpr[_i];
    ck_assert_err(dd_filter_policy_check(&p, why, sizeof why), DD_INVALID);
    ck_assert_ptr_nonnull(strstr(why, "fpr"));
    ck_assert_ptr_nonnull(strstr(why, "1e-7 to 0.05"));
    ck_assert_err(dd_filter_operand(&p, 0, NULL, 0, &out), DD_INVALID);
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

struct field_case {
    const char *field; /* named in the refusal; NULL: accepted */
    struct dd_filter_policy p;
};

#define POLICY(...)                                                                                          \
    {                                                                                                        \
        .kind = DD_FILTER_BLOOM, .fpr = 0.001 / 3, .capacity = 256, .cap = 200000, .growth = 2, __VA_ARGS__  \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init" /* each case overrides one default */
static const struct field_case field_cases[] = {
    {NULL, POLICY(.kind = DD_FILTER_BLOOM)},
    {"filter", POLICY(.kind = (enum dd_filter_kind)0)},
    {"filter", POLICY(.kind = (enum dd_filter_kind)5)},
    {"filter", POLICY(.kind = (enum dd_filter_kind) - 1)},
    {"on_full", POLICY(.on_full = (enum dd_filter_on_full)3)},
    {NULL, POLICY(.fpr = 0.05)},
    {NULL, POLICY(.fpr = 1e-7, .capacity = 16, .cap = 200)},
    {"capacity", POLICY(.capacity = 0)},
    {"capacity", POLICY(.capacity = 15)},
    {NULL, POLICY(.capacity = 16)},
    {NULL, POLICY(.capacity = 1000000, .cap = 1000000, .fpr = 0.05)},
    {"capacity", POLICY(.capacity = 1000001)},
    {"capacity", POLICY(.capacity = UINT32_MAX)},
    {"cap", POLICY(.cap = 255)},
    {"cap", POLICY(.cap = 16000001, .fpr = 0.05)},
    {"cap", POLICY(.cap = 720000)}, /* 1.7e-4 of 3.3e-4 */
    {NULL, POLICY(.cap = 710000)},
    {"growth", POLICY(.growth = 0)},
    {"growth", POLICY(.growth = 3)},
    {"max_layers", POLICY(.max_layers = 1)},
    {"max_layers", POLICY(.on_full = DD_ON_FULL_ROTATE)},
    {"max_layers", POLICY(.on_full = DD_ON_FULL_ROTATE, .max_layers = 1)},
    {NULL, POLICY(.on_full = DD_ON_FULL_ROTATE, .max_layers = 2)},
    {NULL, POLICY(.on_full = DD_ON_FULL_SATURATE, .max_layers = 1)},
    {"max_layers", POLICY(.on_full = DD_ON_FULL_SATURATE, .max_layers = 65)},
    {"fingerprint_bits", POLICY(.fingerprint_bits = 20)},
    {NULL, POLICY(.kind = DD_FILTER_CUCKOO, .fingerprint_bits = 4)},
    {"fingerprint_bits", POLICY(.kind = DD_FILTER_CUCKOO, .fingerprint_bits = 3)},
    {"fingerprint_bits", POLICY(.kind = DD_FILTER_CUCKOO, .fingerprint_bits = 33)},
    {"fingerprint_bits", POLICY(.kind = DD_FILTER_COMPACT, .fingerprint_bits = 15)},
    {NULL, POLICY(.kind = DD_FILTER_COMPACT, .fingerprint_bits = 32)},
    {"tightening", POLICY(.tightening = 9)},
    {"tightening", POLICY(.tightening = 96)},
    {NULL, POLICY(.tightening = 95)},
};
#pragma GCC diagnostic pop
enum { FIELD_CASES = sizeof field_cases / sizeof *field_cases };

START_TEST(fields)
{
    const struct field_case *c = &field_cases[_i];
    char why[200] = "";
    enum dd_err err = dd_filter_policy_check(&c->p, why, sizeof why);
    ck_assert_msg((err == DD_OK) == (c->field == NULL), "case %d: %s", _i, why);
    if (!c->field) return;
    char start[40];
    snprintf(start, sizeof start, "%s: ", c->field);
    ck_assert_msg(strncmp(why, start, strlen(start)) == 0, "case %d: \"%s\" does not begin with \"%s\"", _i,
                  why, start);
    ck_assert_err(dd_filter_policy_check(&c->p, NULL, 0), DD_INVALID);
}
END_TEST

START_TEST(kind_names)
{
    for (unsigned k = KINDS_FROM; k <= KINDS_TO; k++) {
        enum dd_filter_kind kind;
        ck_assert_ok(dd_filter_kind_parse(dd_slice_str(dd_filter_kind_name((enum dd_filter_kind)k)), &kind));
        ck_assert_uint_eq(kind, k);
    }
    enum dd_filter_kind kind;
    ck_assert_err(dd_filter_kind_parse(dd_slice_str(""), &kind), DD_INVALID);
    ck_assert_err(dd_filter_kind_parse(dd_slice_str("Bloom"), &kind), DD_INVALID);
    ck_assert_str_eq(dd_filter_kind_name((enum dd_filter_kind)0), "unknown");
    ck_assert_str_eq(dd_filter_kind_name((enum dd_filter_kind)99), "unknown");
}
END_TEST

Suite *suite_policy(void)
{
    Suite *s = suite_create("filter policy");
    TCase *t = tcase_create("policy");
    tcase_add_loop_test(t, fpr_out_of_range, 0, sizeof bad_fpr / sizeof *bad_fpr);
    tcase_add_loop_test(t, fields, 0, FIELD_CASES);
    tcase_add_test(t, kind_names);
    suite_add_tcase(s, t);
    return s;
}
