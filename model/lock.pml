/*
 * The Redis queue protocol and core's deadlines as a model for Spin. docs/model.md maps its parts to the clauses of
 * docs/spec.md, to the scripts of packages/redis-protocol/src/scripts and to functions of core.
 *
 * PROCESSES processes acquire one lock ACQUISITIONS times each. A script is one step of the store. A request is sent,
 * executed and answered in three steps, and anything else may happen between them.
 *
 * Time has no numbers, only an order of events (docs/spec.md §1.2): whatever is known of a grant is counted from before the
 * store started it, so its holder's time is over before the store's is. `expire` is one step: the time of everybody who
 * counts on this grant ends, then the store forgets it. A grant whose time is over cannot begin a lease any more. A grant of
 * a process that runs is renewed in time: only the grants of a crashed or paused process, and those that nobody
 * knows of any more, expire.
 *
 * PLANTED is the number of an error that the checker must find: docs/model.md lists them.
 */
#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef ACQUISITIONS
#define ACQUISITIONS 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef LOSSES
#define LOSSES 1      /* messages, requests and replies that are lost, in all; an attempt may also arrive late */
#endif
#ifndef PAUSES
#define PAUSES 1      /* pauses of a process that outlast every time limit */
#endif
#ifndef RENEWALS
#define RENEWALS 1
#endif
#ifndef ABORTS
#define ABORTS 0      /* acquires that are aborted while they wait or ask */
#endif
#ifndef PLANTED
#define PLANTED 0
#endif

#define IDS (PROCESSES * ACQUISITIONS + 1)
#define owner(id) ((id - 1) % PROCESSES)
#define id(p) (1 + p + PROCESSES * round[p])

mtype:phase = { Idle, Enqueuing, Waiting, Granted, Holding, Ending, Done, Crashed };
mtype:request = { None, Attempt, RenewFirst, Renew, Release, Abandon, Check };
mtype:reply = { Waits, Holds, Over };   /* does not hold · holds · the time of this grant is over by now */

/* ---- The store ---- */
byte holder;                  /* lock key: the id that holds; 0: the key does not exist */
bit raised;                   /* lock key: the token of the hold is above all that were minted before */
bit flag;                     /* lock key: somebody waits */
bit horizon;                  /* token key: a queue may exist */
bit queued[IDS];              /* queue: its members … */
byte place[IDS];              /* … and their scores */
bit alive[PROCESSES];         /* queue: the processes of waiters that count as alive */

/* ---- The network ---- */
typedef Call {
  mtype:request kind = None;
  mtype:reply grant = Waits;  /* its reply, on its way, of what is answered */
  bit outdates                /* the message on its way to this process was sent before this was answered with "waiting" */
}
Call call[PROCESSES];         /* an attempt, renewal, release or abandon of a process */
Call check[PROCESSES];        /* its check */
byte late[PROCESSES];         /* this id's attempt was reported as failed, and is still on its way */
typedef Message {
  byte to;                    /* `granted <id> <token>`, on its way to the process or kept by it: the id; 0: no message */
  bit isOver;                 /* the time of the grant is over */
  bit isOld                   /* the token is not above `lastToken`: the last answer "waiting" came after it */
}
Message message[PROCESSES];   /* on its way */
Message early[PROCESSES];     /* came before the reply of the attempt: Enqueuing.messageToken */

/* ---- The processes ---- */
mtype:phase phase[PROCESSES] = Idle;
byte round[PROCESSES];
bit lease[PROCESSES];         /* the process believes that it holds; 0: it does not, and was told */
bit lapsed[PROCESSES];        /* Granted: the time of its grant is over */
bit paused[PROCESSES];

byte crashes = CRASHES, losses = LOSSES, pauses = PAUSES, renewals = RENEWALS, aborts = ABORTS;
hidden byte h, i, n, w;       /* of one step */

#define runs(p) (phase[p] != Crashed && !paused[p])
#define begins(p) (p == 0 || round[p] > 0 || round[p - 1] > 0 || phase[p - 1] != Idle)

/* ---- The scripts ---- */

/* The first member of the queue, in `h`; 0: the queue is empty. */
inline head() {
  h = 0; i = 1;
  do
  :: i == IDS -> break
  :: else ->
     if
     :: queued[i] && (h == 0 || place[i] < place[h]) -> h = i
     :: else
     fi;
     i++
  od
}

/* §7.3, §7.4: a lock that is free, or taken by an attempt, passes over no live waiter in the queue. */
inline nobody_is_passed_over() {
  n = 1;
  do
  :: n == IDS -> break
  :: else -> assert(!queued[n] || phase[owner(n)] == Crashed || !alive[owner(n)]); n++
  od
}

inline mint(who) {
  printf("store      acquisition %d holds\n", who);
#if PLANTED == 9
  raised = !flag;
#else
  raised = 1;
#endif
  holder = who
}

inline set_free() {
  printf("store      acquisition %d no longer holds\n", holder);
  holder = 0; raised = 0
}

/* The message may be lost. A second one on its way replaces the first, as if that had been lost. */
inline publish(q, who) {
  if
  :: printf("store      publishes: granted %d\n", who); message[q].to = who; message[q].isOver = 0; message[q].isOld = 0; call[q].outdates = 0; check[q].outdates = 0
  :: losses > 0 -> losses--; printf("network    the message to acquisition %d is lost\n", who)
  fi
}

/* fragments/hand-off.lua. The server may not have noticed yet that nobody listens to the channel of a crashed process. */
inline hand_off(p) {
  do
  :: head(); flag = 0;
     if
     :: h == 0 -> break
     :: else -> w = owner(h); queued[h] = 0
     fi;
     if
     :: w != p && (phase[w] == Crashed || !alive[w]) -> take_place(h)
     :: w == p || alive[w] ->
#if PLANTED == 8
        queued[h] = 1;
#endif
        w = h; head(); flag = (h != 0); mint(w);
        if
        :: owner(w) != p -> publish(owner(w), w)
        :: else
        fi;
        break
     fi
  od
}

inline keep_alive(p) {
  alive[p] = 1;
#if PLANTED != 7
  horizon = 1;
#endif
}

inline enqueue(who) {
  i = 1; n = 0;
  do
  :: i == IDS -> break
  :: else -> n = (place[i] > n -> place[i] : n); i++
  od;
  queued[who] = 1; place[who] = n + 1; printf("store      acquisition %d is in the queue\n", who)
}

/* An id that never comes back needs no place. */
inline take_place(who) {
  n = place[who];
  if
  :: !queued[who] && n > 0 && (id(owner(who)) != who || phase[owner(who)] == Crashed) ->
     place[who] = 0; i = 1;
     do
     :: i == IDS -> break
     :: else -> place[i] = (place[i] > n -> place[i] - 1 : place[i]); i++
     od
  :: else
  fi
}

/* acquire.lua, for an exclusive lock, with `enqueue`. The grant is in `w`; 0: waiting. */
inline acquire(p, who) {
  if
  :: holder == 0 && !horizon -> nobody_is_passed_over(); mint(who); flag = 0
  :: holder != 0 || horizon ->
     if
     :: holder == 0 -> hand_off(p)
     :: holder != 0
     fi;
     if
     :: holder == 0 -> mint(who)
     :: holder != 0 && holder != who ->
        if
        :: !queued[who] -> enqueue(who)
        :: queued[who]
        fi;
        keep_alive(p);
#if PLANTED != 5
        flag = 1;
#endif
     :: holder == who
     fi
  fi;
  w = (holder == who)
}

/* release.lua */
inline release(p, who) {
  if
#if PLANTED == 1
  :: holder != 0 ->
#else
  :: holder == who ->
#endif
     set_free();
     if
     :: flag -> hand_off(p)
     :: !flag -> nobody_is_passed_over()
     fi
  :: else
  fi
}

/* abandon.lua */
inline abandon(p, who) {
  n = (holder == who || queued[who] && holder == 0);
  queued[who] = 0;
  if
#if PLANTED != 11
  :: n -> set_free(); hand_off(p)
#else
  :: n -> set_free(); nobody_is_passed_over()
#endif
  :: else
  fi
}

/* A grant of an id that neither waits nor holds at its process. */
inline late_abandon(p) {
  abandon(p, message[p].to);
  w = message[p].to; drop(message[p]); take_place(w)
}

/* check.lua, for one waiter of its process. The grant is in `w`; 0: waiting. */
inline look(p, who) {
  if
  :: holder == who
  :: holder != who ->
#if PLANTED != 10
     queued[who] = 1;
#endif
     keep_alive(p);
     if
     :: holder != 0 -> flag = 1
#if PLANTED != 6
     :: holder == 0 -> hand_off(p)
#else
     :: holder == 0
#endif
     fi
  fi;
  w = (holder == who)
}

/* ---- A process ---- */

inline reply(c, what, holds, p) {
  c.kind = what; c.grant = (holds -> Holds : Waits); c.outdates = (!holds && message[p].to != 0)
}

/* A request and its execution are one step where nothing can tell them apart. */
inline ask(p) {
  acquire(p, id(p)); reply(call[p], Attempt, w, p)
}

inline forget(c) {
  c.kind = None; c.grant = Waits; c.outdates = 0
}

inline drop(m) {
  m.to = 0; m.isOver = 0; m.isOld = 0
}

#define SAY(what) printf(what, p, id(p))

/* A lease begins. §11.1: nobody else believes in one; §8.2: whoever did was told. §6.1: its token is the highest so far. */
inline enter(p) {
  SAY("process %d  acquisition %d enters its critical section\n");
  n = 0;
  do
  :: n == PROCESSES -> break
  :: else -> assert(n == p || !lease[n]); n++
  od;
  assert(raised);
  lease[p] = 1; phase[p] = Holding; drop(early[p]); forget(check[p])
}

/* A waiter was handed the lock. It enters if enough time is left, or renews first: AcquireLoop.#renewAndAccept. */
inline deliver(p, over) {
  if
#if PLANTED != 3
  :: !over -> enter(p)
#else
  :: enter(p)
#endif
  :: phase[p] = Granted; lapsed[p] = over; forget(check[p]); SAY("process %d  acquisition %d must renew first\n");
  fi
}

/*
 * SubscribedWaiters.#onTurn: the lease of a message is counted from the last request that was answered with "waiting". So the
 * message must be newer than that answer.
 */
inline turn(p, m) {
  h = m.isOver; w = m.isOld; drop(m);
  if
#if PLANTED == 13
  :: true -> deliver(p, (h && !w))
#else
  :: !w -> deliver(p, h)
  :: w
#endif
  fi
}

inline answered_waiting(p, c) {
  if
  :: c.outdates && message[p].to != 0 -> message[p].isOld = 1
  :: else
  fi
}

inline next(p) {
  lease[p] = 0; drop(early[p]); lapsed[p] = 0; w = id(p);
  if
  :: round[p] + 1 < ACQUISITIONS -> round[p]++; phase[p] = Idle; take_place(w)
  :: else -> phase[p] = Done
  fi
}

/* The checks of a process come again and again. Those that change nothing are left out, so that every run has an end. */
#define needs_check(p) (holder == 0 || holder == id(p) || !queued[id(p)] || !alive[p])

proctype Process(byte p) {
end:
  do
  /* An attempt. Processes are alike: they begin in the order of their numbers, and every other order is a renaming. */
  :: atomic { phase[p] == Idle && runs(p) && begins(p) -> SAY("process %d  acquisition %d sends its attempt\n"); phase[p] = Enqueuing; ask(p) }
  :: atomic { phase[p] == Enqueuing && call[p].kind == None && runs(p) -> SAY("process %d  acquisition %d repeats its attempt\n"); ask(p) }
  :: atomic { call[p].kind == Attempt && runs(p) ->
       if
       :: call[p].grant == Over -> phase[p] = Ending; drop(early[p]); forget(call[p]); call[p].kind = Abandon; SAY("process %d  acquisition %d got a grant that is over, and abandons it\n"); /* #abandonUseless */
       :: call[p].grant == Holds -> forget(call[p]); enter(p)
       :: call[p].grant == Waits ->
          SAY("process %d  acquisition %d is told that it waits\n");
          phase[p] = Waiting; answered_waiting(p, call[p]);
          early[p].isOld = (early[p].to != 0 && call[p].outdates);
          forget(call[p]);
          if
          :: early[p].to != 0 -> turn(p, early[p])
          :: early[p].to == 0
          fi
       fi }

  /* A message: SubscribedWaiters.#onMessage. */
  :: atomic { message[p].to != 0 && runs(p) ->
       printf("process %d  receives: granted %d\n", p, message[p].to);
       if
       :: message[p].to == id(p) && phase[p] == Waiting -> turn(p, message[p])
       :: message[p].to == id(p) && phase[p] == Enqueuing ->
          early[p].to = message[p].to; early[p].isOver = message[p].isOver; drop(message[p])
#if PLANTED != 12
       :: message[p].to == id(p) && (phase[p] == Holding || phase[p] == Granted) -> drop(message[p])
       :: message[p].to != id(p) || phase[p] == Ending || phase[p] == Done || phase[p] == Idle ->
#else
       :: message[p].to != id(p) || phase[p] != Waiting && phase[p] != Enqueuing ->
#endif
          late_abandon(p)                 /* #abandonUnknown */
       fi }

  /* A waiter: RedisWaiterHeartbeat.#check, AcquireLoop.#renewAndAccept. */
  :: atomic { phase[p] == Waiting && check[p].kind == None && needs_check(p) && runs(p) ->
       SAY("process %d  acquisition %d sends its check\n");
       look(p, id(p)); reply(check[p], Check, w, p) }
  :: atomic { check[p].kind != None && runs(p) ->
       if
       :: check[p].grant != Waits -> SAY("process %d  acquisition %d is told by its check that it holds\n"); w = (check[p].grant == Over); forget(check[p]); deliver(p, w)
       :: check[p].grant == Waits -> SAY("process %d  acquisition %d is told by its check that it waits\n"); answered_waiting(p, check[p]); forget(check[p])
       fi }
  :: atomic { phase[p] == Granted && call[p].kind == None && runs(p) ->
       SAY("process %d  acquisition %d renews first\n");
#if PLANTED != 14
       reply(call[p], RenewFirst, (holder == id(p) && !lapsed[p]), p) }
#else
       reply(call[p], RenewFirst, (holder == id(p)), p) }
#endif
  :: atomic { call[p].kind == RenewFirst && runs(p) ->
       w = (call[p].grant == Holds); forget(call[p]);
       if
       /* §6.1: by its own grant, and not by a later one of the same acquisition. */
       :: w -> assert(!lapsed[p]); enter(p)
       :: !w -> phase[p] = Ending; call[p].kind = Abandon            /* #abandonUseless */
       fi }

  /* A holder: LeaseMonitor, ManagerCore.release. */
  :: atomic { phase[p] == Holding && lease[p] && call[p].kind == None && renewals > 0 && runs(p) ->
       SAY("process %d  acquisition %d sends a renewal\n"); renewals--; reply(call[p], Renew, (holder == id(p)), p) }
  :: atomic { call[p].kind == Renew && runs(p) ->
       SAY("process %d  acquisition %d has the reply of its renewal\n"); lease[p] = (call[p].grant == Holds); forget(call[p]) }
  :: atomic { phase[p] == Holding && !lease[p] && runs(p) ->
       SAY("process %d  acquisition %d leaves: its lease was lost\n");
       forget(call[p]);
       if
       :: next(p)
       :: phase[p] = Ending; call[p].kind = Abandon                  /* unconfirmed */
       fi }
  :: atomic { phase[p] == Holding && lease[p] && runs(p) ->
       SAY("process %d  acquisition %d leaves, and sends its release\n");
       forget(call[p]); lease[p] = 0; phase[p] = Ending; call[p].kind = Release }

  /* The store carries out a release or an abandon. */
  :: atomic { call[p].kind == Release || call[p].kind == Abandon ->
       if
       :: call[p].kind == Release -> printf("store      release of %d\n", id(p)); release(p, id(p))
       :: call[p].kind == Abandon -> printf("store      abandon of %d\n", id(p)); abandon(p, id(p))
       fi;
       if
       :: forget(call[p]);
          if
          :: phase[p] != Crashed -> next(p)
          :: phase[p] == Crashed
          fi
       :: losses > 0 && phase[p] != Crashed -> losses--; printf("network    the reply is lost: the request is sent again\n")
       fi }
  :: atomic { late[p] != 0 -> printf("store      the late attempt of %d arrives\n", late[p]); acquire(p, late[p]); w = late[p]; late[p] = 0; take_place(w) }

  /* An acquire is aborted. */
  :: atomic { aborts > 0 && runs(p) && (phase[p] == Waiting || phase[p] == Enqueuing || phase[p] == Granted) ->
       SAY("process %d  acquisition %d is aborted\n"); aborts--; phase[p] = Ending; drop(early[p]); lapsed[p] = 0; forget(check[p]); forget(call[p]); call[p].kind = Abandon }

  /* The network loses a request or its reply. An attempt is repeated, and the first may arrive late. */
  :: atomic { losses > 0 && phase[p] == Idle && runs(p) && begins(p) ->
       SAY("process %d  acquisition %d sends its attempt, which will be late\n"); losses--; phase[p] = Enqueuing; late[p] = id(p) }
  :: atomic { losses > 0 && (call[p].kind == Attempt || call[p].kind == Renew) && runs(p) ->
       SAY("process %d  acquisition %d gets no reply to its call\n"); losses--; forget(call[p]) }
  :: atomic { losses > 0 && call[p].kind == RenewFirst && runs(p) ->
       SAY("process %d  acquisition %d gets no reply to its first renewal\n"); losses--; forget(call[p]); phase[p] = Ending; call[p].kind = Abandon }
  :: atomic { losses > 0 && check[p].kind != None && runs(p) -> SAY("process %d  acquisition %d gets no reply to its check\n"); losses--; forget(check[p]) }

  /* A process ends without warning, or stands still and goes on. */
  :: atomic { crashes > 0 && phase[p] != Crashed && phase[p] != Done && phase[p] != Idle ->
       printf("process %d  crashes\n", p); crashes--; phase[p] = Crashed; lease[p] = 0; paused[p] = 0; drop(early[p]); lapsed[p] = 0;
       forget(check[p]); drop(message[p]); w = id(p); take_place(w);
       if
       :: call[p].kind == Attempt || call[p].kind == RenewFirst || call[p].kind == Renew -> forget(call[p])
       :: else
       fi }
  :: atomic { pauses > 0 && runs(p) && phase[p] != Idle && phase[p] != Done -> pauses--; paused[p] = 1; printf("process %d  stands still\n", p) }
  :: atomic { paused[p] -> paused[p] = 0; printf("process %d  goes on\n", p) }
  od
}

/* ---- Time ---- */

#define mark_over(c) c.grant = (c.grant == Holds && id(p) == holder -> Over : c.grant)
#define is_attended(who) (id(owner(who)) == who && runs(owner(who)) && phase[owner(who)] != Done && phase[owner(who)] != Idle)

#define checks(p) (runs(p) && (phase[p] == Waiting || phase[p] == Enqueuing))
#define stands_still(p) (paused[p] || phase[p] == Crashed)
#if PROCESSES > 2
#define nobody_checks (!checks(0) && !checks(1) && !checks(2))
#else
#define nobody_checks (!checks(0) && !checks(1))
#endif

active proctype Time() {
  byte p;
end:
  do
  /* The lock key expires. Everybody who counts on this grant learned before that its time is over (docs/spec.md §1.2). */
  :: d_step { holder != 0 && !is_attended(holder) ->
       printf("time       the time of acquisition %d is over\n", holder);
       p = 0;
       do
       :: p == PROCESSES -> break
       :: else ->
          lease[p] = (id(p) == holder -> 0 : lease[p]);
          lapsed[p] = (lapsed[p] || phase[p] == Granted && id(p) == holder);
#if PLANTED == 2
          if
          :: call[p].kind != Attempt && call[p].kind != RenewFirst -> mark_over(call[p])
          :: else
          fi;
#elif PLANTED == 4
          if
          :: call[p].kind != Renew -> mark_over(call[p])
          :: else
          fi;
#else
          mark_over(call[p]);
#endif
          mark_over(check[p]);
          message[p].isOver = (message[p].isOver || message[p].to == holder);
          early[p].isOver = (early[p].isOver || early[p].to == holder);
          p++
       od;
       p = 0; set_free(); flag = 0 }

  /* A process sent no check for so long that it no longer counts as alive. The queue's key ends with the last of them. */
  :: d_step { nobody_checks && horizon ->
       printf("time       no process counts as alive: the queue ends\n");
       p = 0;
       do
       :: p == PROCESSES -> break
       :: else -> alive[p] = 0; p++
       od;
       horizon = 0; i = 1;
       do
       :: i == IDS -> break
       :: else -> queued[i] = 0; i++
       od;
       p = 0 }
  :: d_step { alive[0] && stands_still(0) && !nobody_checks -> alive[0] = 0; printf("time       process 0 does not count as alive\n") }
  :: d_step { alive[1] && stands_still(1) && !nobody_checks -> alive[1] = 0; printf("time       process 1 does not count as alive\n") }
#if PROCESSES > 2
  :: d_step { alive[2] && stands_still(2) && !nobody_checks -> alive[2] = 0; printf("time       process 2 does not count as alive\n") }
#endif
  od
}

/*
 * §7.3, §7.7: every run comes to an end, and then every acquire of a live process was granted: what goes round without an end
 * is a cycle without progress.
 */
active proctype Everybody_was_served() {
end:
  timeout ->
  d_step {
    n = 0;
    do
    :: n == PROCESSES -> break
    :: else -> assert(phase[n] == Done || phase[n] == Crashed); n++
    od;
    n = 0
  }
progress:
end_of_run:
  false
}

init {
  atomic {
    w = 0;
    do
    :: w == PROCESSES -> break
    :: else -> run Process(w); w++
    od
  }
}
