// mcap's writer: every file of the public conformance suite, byte for byte.
#include "tests/unit/mcap_conformance.h"

static void every_file_is_the_suites(void **state)
{
    int n = conformance_read(), different = 0;

    (void)state;
    assert_int_equal(n, CONFORMANCE_FILES);
    for (int i = 0; i < n; i++) {
        struct mcap_bytes out = {0};
        char sha256[65];

        conformance_make(&conformance[i], &out);
        conformance_sha256(out.data, out.n, sha256);
        if (out.n != conformance[i].bytes || strcmp(sha256, conformance[i].sha256) != 0) {
            print_error("%s: %zu bytes, not %zu\n", conformance[i].name, out.n,
                        conformance[i].bytes);
            different++;
        }
        mcap_bytes_free(&out);
    }
    assert_int_equal(different, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_file_is_the_suites)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
