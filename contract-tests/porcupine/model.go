package main

import (
	"cmp"
	"maps"

	"github.com/anishathalye/porcupine"
)

// model is a lock after the models of Jepsen's tests of Hazelcast: what a lock answers that makes one call after the other.
type model struct {
	name string
	// owners: only who acquired a hold enters it again, and releases it.
	owners, reentrant bool
	// tokens: they rise from hold to hold. required: no hold is without one.
	tokens, required bool
}

// mode is what decides which holds exclude each other.
type mode struct {
	kind          string
	weight, limit int64
}

type hold struct {
	mode
	client, fence string
	count         int64
	isReentered   bool
}

type owner struct{ client, uid string }

// state is never changed: a step makes another one.
type state struct {
	holds map[string]hold
	// highest tokens of the holds that are over.
	highest map[mode]string
	// releases that may still succeed, as the answer to what an earlier call did.
	echoes map[owner]int64
	// holds that are over, and have several acquires.
	ended map[string]bool
}

func (m model) porcupine() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{map[string]hold{}, map[mode]string{}, map[owner]int64{}, map[string]bool{}} },
		Step: func(before, input, _ any) (bool, any) { return m.step(before.(state), input.(*call)) },
		Equal: func(a, b any) bool {
			one, other := a.(state), b.(state)
			return maps.Equal(one.holds, other.holds) && maps.Equal(one.highest, other.highest) &&
				maps.Equal(one.echoes, other.echoes) && maps.Equal(one.ended, other.ended)
		},
	}
}

func (m model) step(s state, c *call) (bool, state) {
	held, isHeld := s.holds[c.uid]
	isOwn := isHeld && (!m.owners || held.client == c.client)
	switch {
	case c.f == ":acquire" && !c.isKnown:
		return true, s.echoing(c, 1)
	case c.isEnd && isHeld:
		return true, s.echoing(c, held.count).leaving(c, held, held.count)
	case !c.isKnown && isOwn:
		return true, s.echoing(c, 1).leaving(c, held, 1)
	case !c.isKnown || c.isEnd:
		return true, s
	case c.isLate:
		return false, s
	case c.f == ":release" && isOwn:
		return true, s.leaving(c, held, 1)
	case c.f == ":release":
		return s.echoes[owner{c.client, c.uid}] > 0, s.echoing(c, -1)
	case isHeld:
		isSame := !m.tokens || held.fence == c.fence
		held.count++
		return m.reentrant && isOwn && isSame && (held.kind == ":exclusive" || held.kind == c.kind), s.with(c.uid, held)
	}
	return m.admits(s, c), s.with(c.uid, hold{c.mode, c.client, c.fence, 1, c.isReentered})
}

func (m model) admits(s state, c *call) bool {
	permits := c.weight
	for _, other := range s.holds {
		permits += other.weight
		areRivals := excludes(other.mode, c.mode)
		if c.kind == ":permit" && other.kind == ":permit" {
			areRivals = other.limit != c.limit
		}
		if areRivals {
			return false
		}
	}
	if permits > c.limit || m.owners && s.ended[c.uid] || m.required && c.fence == "" {
		return false
	}
	for earlier, fence := range s.highest {
		if m.tokens && c.fence != "" && excludes(earlier, c.mode) && !isHigher(c.fence, fence) {
			return false
		}
	}
	return true
}

func excludes(one, other mode) bool {
	if one.kind == ":permit" && other.kind == ":permit" {
		return one.weight+other.weight > other.limit
	}
	return one.kind != other.kind || one.kind == ":exclusive"
}

// isHigher compares numbers of any length.
func isHigher(one, other string) bool {
	return cmp.Or(cmp.Compare(len(one), len(other)), cmp.Compare(one, other)) > 0
}

func (s state) with(uid string, one hold) state {
	s.holds = maps.Clone(s.holds)
	s.holds[uid] = one
	return s
}

// leaving takes entries from a hold, which is over with the last of them.
func (s state) leaving(c *call, held hold, entries int64) state {
	if held.count -= entries; held.count > 0 {
		return s.with(c.uid, held)
	}
	s.holds = maps.Clone(s.holds)
	delete(s.holds, c.uid)
	if held.isReentered {
		s.ended = maps.Clone(s.ended)
		s.ended[c.uid] = true
	}
	if held.fence != "" && isHigher(held.fence, s.highest[held.mode]) {
		s.highest = maps.Clone(s.highest)
		s.highest[held.mode] = held.fence
	}
	return s
}

// echoing permits as many releases more. A call of a process that is not the owner permits none.
func (s state) echoing(c *call, more int64) state {
	if more > 0 && (!c.isRepeated || c.isForeign) {
		return s
	}
	s.echoes = maps.Clone(s.echoes)
	whose := owner{c.client, c.uid}
	if s.echoes[whose] += more; s.echoes[whose] <= 0 {
		delete(s.echoes, whose)
	}
	return s
}
