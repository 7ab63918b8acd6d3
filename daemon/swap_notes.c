// swap_notes: why a policy was refused, kept for whoever lists what there is. A note is of the files
// as they were: when one of them has changed it says nothing any more. In memory only, of the
// last SWAP_NOTES names.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/swap_impl.h"

// Was it the candidate that was at fault? Neither a stop nor a lack of time or memory says anything
// of a policy.
static bool of_the_candidate(int result)
{
    return result != 0 && result != -ECANCELED && result != -EAGAIN &&
           result != -ENODATA && result != -ETIMEDOUT && result != -ENOMEM;
}

// At most SWAP_NOTE bytes, and no half of a character.
static void cut(char *out, const char *text)
{
    size_t n = strnlen(text, SWAP_NOTE);

    while (text[n] && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    memcpy(out, text, n);
    out[n] = '\0';
}

static struct swap_note *of_name(struct swap *s, const char *name)
{
    struct swap_note *oldest = &s->note[0];

    for (int i = 0; i < SWAP_NOTES; i++) {
        if (strcmp(s->note[i].name, name) == 0)
            return &s->note[i];
        if (s->note[i].number < oldest->number)
            oldest = &s->note[i];
    }
    return oldest;
}

void swap_note(struct swap *s)
{
    const struct swap_job *j = &s->job;
    struct swap_note n = {.stamp = j->stamp};
    time_t now = time(NULL);
    struct tm tm;

    if (j->request.back || j->stamp == 0 ||
        (j->report.result != 0 && !of_the_candidate(j->report.result)))
        return;
    memcpy(n.name, j->request.name, sizeof n.name);
    cut(n.why, j->report.text);
    if (localtime_r(&now, &tm))
        strftime(n.clock, sizeof n.clock, " at %H:%M", &tm);
    pthread_mutex_lock(&s->mutex);
    struct swap_note *at = of_name(s, n.name);
    n.number = j->report.number;
    if (j->report.result != 0)
        *at = n;
    else if (strcmp(at->name, n.name) == 0)
        *at = (struct swap_note){.number = 0};
    pthread_mutex_unlock(&s->mutex);
}

void swap_notes_tell(struct swap *s, struct swap_entry *e, int n)
{
    struct swap_note note[SWAP_NOTES];

    pthread_mutex_lock(&s->mutex);
    memcpy(note, s->note, sizeof note);
    pthread_mutex_unlock(&s->mutex);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < SWAP_NOTES && e[i].usable && !e[i].note[0]; k++)
            if (strcmp(note[k].name, e[i].name) == 0 &&
                swap_files_stamp(s->src.cfg, e[i].name) == note[k].stamp)
                snprintf(e[i].note, sizeof e[i].note, "refused%s: %s", note[k].clock,
                         note[k].why);
}
