/*
 * How this works
 *
 * How collectives are settled, so that every rank has the result or every rank an error; three
 * ranks, under x86-TSO (tso.h). A rank posts collective k in its own line (POST), waits until all
 * posts that it needs are there, and raises DONE. It posts k only when everybody's DONE is k - 1:
 * the board has one line here. Word k % SETTLES is about k if it holds DOUBT, SUCCESS or FAILED of
 * k; in the good case nobody writes it.
 *
 *   finisher                                giver-up
 *     its post   (into its store buffer)      word: older -> DOUBT(k), compare-and-swap
 *     all posts it needs are there            membarrier, even if the mark was there already
 *     load word; not about k: success         look at the posts once more
 *     DOUBT(k) -> SUCCESS(k)                  DOUBT(k) -> SUCCESS(k) or FAILED(k)
 *     take what is there                      take what is there
 *
 * A finisher that did not see DOUBT had loaded the word before the mark was made, hence after all
 * posts it needed were in memory, except for its own, which may be in its store buffer. The
 * membarrier brings that out. So whoever made the mark finds all of them, and cannot fail what
 * somebody has finished. It may even post before it looks once more, but not later. Whoever waits
 * looks at the word, too: the post it waits for may never come.
 *
 *   default      everybody needs everybody's post
 *   -DROOTED     everybody needs the post of rank 0 alone, who needs none: a broadcast. Having
 *                posted, it loads the word like a finisher, and may propose success: it knows
 *                that what all others need is there.
 *   -DFALLBACK   no membarrier; everybody fences after its post.
 *   -DDEATH      rank MORTAL may stop for ever at any step; the others then give up, or not.
 *   -DPATIENT=m  the ranks in the mask m have no time limit and give up for a death only. All
 *                others may give up at any moment, also before they have posted. Without patient
 *                ranks no wait could ever hang.
 *   -DROUNDS=2   two collectives in a row; with -DSETTLES=1 they share a word. Whoever gives up k
 *                looks at DONE before it marks: a rank that is still in k - SETTLES might need
 *                what is there. If there is one, the world is revoked: all that runs fails.
 *
 * All ranks that end a collective must end it alike, and whoever takes success must find what it
 * needs. A hang is an invalid end state.
 */

/*
 * Mutants: MUT_NO_MEMBARRIER, MUT_NO_FENCE (-DFALLBACK), MUT_TRUST_DOUBT (no membarrier after
 * another's mark), MUT_BLIND_FINISH (the finisher does not look at the word), MUT_NO_RECHECK (the
 * giver-up does not look again), MUT_PLAIN_MARK and MUT_PLAIN_VERDICT (store instead of
 * compare-and-swap), MUT_DEAF (whoever waits does not look at the word), MUT_OVERRUN (the word is
 * taken although a rank may still need it), MUT_EARLY_DONE (DONE is raised before the word is
 * loaded), MUT_ANY_NUMBER (a word about another collective counts), MUT_LEAVES (only rank 0 needs
 * posts, as in a reduction, and the others leave once they have posted), MUT_ROOT_WAITS (-DROOTED
 * -DDEATH; the root leaves the decision to whoever had the doubt).
 */

#define RANKS 3
#define PROCS RANKS
#define SB 3
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef SETTLES
#define SETTLES ROUNDS
#endif
#ifndef PATIENT
#define PATIENT 0
#endif
#ifndef MORTAL
#define MORTAL 0
#endif

/* Words. */
#define POST(r) (r)
#define DONE(r) (RANKS + (r))
#define REVOKED (2 * RANKS)
#define WORD(k) (2 * RANKS + 1 + (k) % SETTLES)
#define WORDS (2 * RANKS + 1 + SETTLES)

#define DOUBT(k) (4 * (k) + 1)
#define SUCCESS(k) (4 * (k) + 2)
#define FAILED(k) (4 * (k) + 3)
#ifdef MUT_ANY_NUMBER
#define ABOUT(w, k) ((w) != 0)
#define SAYS(w, what, k) ((w) % 4 == what(k) % 4)
#else
#define ABOUT(w, k) ((w) / 4 == (k))
#define SAYS(w, what, k) ((w) == what(k))
#endif

#include "tso.h"

#ifdef DEATH
bool killed;
#define NEWS killed
#else
#define NEWS false
#endif

#define NEXT ((me + 1) % RANKS)
#define LAST ((me + 2) % RANKS)
#define HAS(r) (mem[POST(r)] == k)
#if defined(ROOTED)
#define COMPLETE (me == 0 || HAS(0))
#define POSTS (me == 0)
#elif defined(MUT_LEAVES)
#define COMPLETE (me != 0 || (HAS(1) && HAS(2)))
#define POSTS true
#else
#define COMPLETE (HAS(NEXT) && HAS(LAST))
#define POSTS true
#endif
#define LINE_IS_FREE (mem[DONE(NEXT)] + 1 >= k && mem[DONE(LAST)] + 1 >= k)
#define LAGGARD (mem[DONE(NEXT)] + SETTLES < k || mem[DONE(LAST)] + SETTLES < k)
#define MAY_GIVE_UP (!(PATIENT & (1 << me)) || NEWS)

/* For the check only: how collective k ended for those who have ended it. */
#define GOOD 1
#define BAD 2
byte outcome[ROUNDS + 1];

inline conclude(how)
{
    d_step {
        assert(outcome[k] == 0 || outcome[k] == how);
        assert(how == BAD || COMPLETE);
        outcome[k] = how;
        w = 0
    }
}

inline post()
{
    atomic {
        !posted && LINE_IS_FREE ->
        posted = true;
        store(me, POST(me), k)
    }
}

inline take()
{
    atomic {
        w = mem[WORD(k)];
        if
        :: SAYS(w, SUCCESS, k) -> conclude(GOOD)
        :: SAYS(w, FAILED, k) -> conclude(BAD)
        :: else ->
#ifdef MUT_OVERRUN /* It is to fail in a finisher. */
            goto left
#else
            assert(w == SUCCESS(k) || w == FAILED(k))
#endif
        fi
    }
}

inline swap(old, new)
{
#ifdef MUT_PLAIN_VERDICT
    if
    :: mem[WORD(k)] == (old) -> store(me, WORD(k), new); fence(me)
    :: else
    fi
#else
    compare_swap(me, WORD(k), old, new, won)
#endif
}

/* Leave a mark that k is in doubt, unless there is a word about k. */
inline mark()
{
    if
    :: ABOUT(mem[WORD(k)], k)
    :: atomic {
        !ABOUT(mem[WORD(k)], k) ->
#ifndef MUT_OVERRUN
        if
        :: LAGGARD -> goto revoke
        :: else
        fi;
#endif
        w = mem[WORD(k)]
       };
#ifdef MUT_PLAIN_MARK
       atomic { store(me, WORD(k), DOUBT(k)); won = true };
#else
       compare_swap(me, WORD(k), w, DOUBT(k), won);
#endif
       w = 0
    fi
}

/* `won`: this rank made the mark itself. */
inline bring_out_posts()
{
#if !defined(FALLBACK) && !defined(MUT_NO_MEMBARRIER)
    if
#ifdef MUT_TRUST_DOUBT
    :: !won
#endif
    :: won = false; membarrier(me)
    fi;
#endif
    won = false
}

inline propose()
{
    if
    :: post()
    :: true
    fi;
    if
#ifdef MUT_NO_RECHECK
    :: true -> swap(DOUBT(k), FAILED(k))
#else
    :: posted && COMPLETE -> swap(DOUBT(k), SUCCESS(k))
    :: !(posted && COMPLETE) -> swap(DOUBT(k), FAILED(k))
#endif
    fi;
    won = false
}

inline give_up()
{
    mark();
    bring_out_posts();
    propose();
    take()
}

inline finish()
{
#ifdef MUT_BLIND_FINISH
    conclude(GOOD)
#else
#ifdef MUT_EARLY_DONE
    store(me, DONE(me), k);
#endif
    atomic {
        w = mem[WORD(k)];
        if
        :: !ABOUT(w, k) -> conclude(GOOD); goto ended
        :: else -> w = 0
        fi
    };
#ifdef MUT_ROOT_WAITS
    (me != 0 || mem[WORD(k)] != DOUBT(k));
#endif
    swap(DOUBT(k), SUCCESS(k));
    won = false;
    take()
#endif
}

active [RANKS] proctype Rank()
{
    byte me = _pid - PROCS;
    byte k = 1;
    byte w;
    bool won, posted;
    {
        posted = !POSTS;
        do
        :: post();
#if defined(FALLBACK) && !defined(MUT_NO_FENCE)
           fence(me)
#endif
        :: posted && COMPLETE -> finish(); goto ended
        :: !(posted && COMPLETE) && MAY_GIVE_UP -> give_up(); goto ended
        :: mem[REVOKED] == 1 -> goto left
#ifdef MUT_DEAF
        :: false ->
#else
        :: atomic { SAYS(mem[WORD(k)], FAILED, k) -> conclude(BAD) };
#endif
ended:
           atomic {
            store(me, DONE(me), k);
            posted = !POSTS;
            k++;
            if
            :: k > ROUNDS -> goto left
            :: else
            fi
           }
        od;
revoke:
        store(me, REVOKED, 1);
left:
        skip
    }
#ifdef DEATH
    unless { (killed && me == MORTAL) }
#endif
}

#ifdef DEATH
active proctype Killer()
{
    if
    :: killed = true
    :: true
    fi
}
#endif
