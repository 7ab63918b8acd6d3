// Seams: which tick says what, what gives way at capacity, and what does not come back.
#include "tests/unit/seam_scene.h"

// Three places, more chunks: one gives way with nearly every arrival. The number still is
// what happened, and crossfade alone may do so without a jump.
static void what_gives_way_is_in_the_number(void **state)
{
    (void)state;
    for (int m = CHUNK_REPLACE; m <= CHUNK_CONSERVATIVE; m++)
        for (int how = CHUNK_HOLD; how <= CHUNK_CUBIC; how++) {
            struct world w;
            ns_t t = NS_PER_S;

            world_start(&w, (enum chunk_mode)m, how, 0);
            chunks_free(w.q);
            w.cfg.capacity = 3;
            assert_int_equal(chunks_init(&w.q, &w.cfg), 0);
            for (int i = 0; i < ARRIVALS; i++) {
                struct chunk_target at;
                struct book b;

                do {
                    b.anchor = t + 20 * MS + (ns_t)(rnd() * 50e6);
                    b.end = b.anchor + ROWS * STEP;
                } while (!clear(&w, &b, b.anchor));
                t = b.anchor;
                w.book[w.n++] = b;
                struct side l = before(&w, t);
                assert_int_equal(push(&w, t, ROWS, t), CHUNK_USED);
                struct side r = after(&w, t, &at);
                for (int j = 0; j < JOINTS && l.there; j++) {
                    assert_true(fabs(at.seam[j] - fabs(r.pos[j] - l.pos[j])) <= ZERO);
                    assert_true(fabs(at.seam_vel[j] - fabs(r.vel[j] - l.vel[j])) <= 2e-3);
                    assert_true(at.seam[j] <= apart(&w) + ZERO);
                }
            }
            chunks_free(w.q);
        }
}

// The seam belongs to the tick in which the chunk came into view, and to no other.
static void only_in_its_own_tick(void **state)
{
    (void)state;
    struct world w;
    struct chunk_target at;

    world_start(&w, CHUNK_REPLACE, CHUNK_LINEAR, 0);
    push(&w, 0, ROWS, 0);
    w.n++;
    assert_true(sample(&w, 0, &at) && at.seam_max == 0); // the first one follows nothing
    push(&w, 10 * MS, ROWS, 50 * MS);
    w.n++;
    assert_true(sample(&w, 50 * MS, &at) && at.seam_max > 0);
    struct chunk_target again;
    assert_true(sample(&w, 50 * MS, &again));
    assert_memory_equal(&at, &again, sizeof at);
    assert_true(sample(&w, 50 * MS + 1, &at) && at.seam_max == 0 && at.seam_vel[0] == 0);
    push(&w, 60 * MS, ROWS,
         70 * MS); // two in one tick: one seam, from what was before both
    w.n++;
    push(&w, 61 * MS, ROWS, 70 * MS);
    w.n++;
    assert_true(sample(&w, 70 * MS, &at) && at.seam_max > 0);
    push(&w, 80 * MS, ROWS, 90 * MS);
    w.n++;
    assert_int_equal(chunks_begin(w.q, 90 * MS), 0);
    assert_true(sample(&w, 90 * MS, &at) &&
                at.seam_max == 0); // starts at rest in its row 0
    push(&w, 100 * MS, ROWS, 110 * MS);
    chunks_clear(w.q);
    push(&w, 105 * MS, ROWS, 110 * MS);
    assert_true(sample(&w, 110 * MS, &at) && at.seam_max == 0);
    chunks_free(w.q);
}

// A plan that was replaced whole does not come back when the newer one ends first.
static void does_not_go_back_to_an_older_plan(void **state)
{
    (void)state;
    static const enum chunk_mode whole[] = {CHUNK_REPLACE, CHUNK_LATEST_ONLY,
                                            CHUNK_CROSSFADE};

    for (size_t m = 0; m < 3; m++) {
        struct world w;
        struct chunk_target at;

        world_start(&w, whole[m], CHUNK_LINEAR, 0);
        push(&w, 0, ROWS, 0);
        w.n++;
        assert_true(sample(&w, 0, &at));
        push(&w, 10 * MS, 5, 20 * MS); // until 110 ms; the first one goes on to 400 ms
        assert_true(sample(&w, 20 * MS, &at));
        assert_true(sample(&w, 110 * MS - 1, &at) && at.newest_id == 2);
        assert_int_equal(chunks_target(w.q, 110 * MS, &at), -ENODATA);
        assert_int_equal(chunks_target(w.q, 300 * MS, &at), -ENODATA);
        chunks_free(w.q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_gives_way_is_in_the_number),
        cmocka_unit_test(only_in_its_own_tick),
        cmocka_unit_test(does_not_go_back_to_an_older_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
