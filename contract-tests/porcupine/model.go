package main

import (
	"maps"
	"strings"

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

type owner struct{ client, uid string }

type hold struct {
	client, kind, fence  string
	weight, limit, count int
	isReentered          bool
}

// mode is what decides which holds exclude each other.
type mode struct {
	kind   string
	weight int
}

// state is never changed: a step makes another one.
type state struct {
	holds map[string]hold
	// highest tokens of the holds that are over.
	highest map[mode]string
	// releases that may still succeed, as the answer to what an earlier call did.
	echoes map[owner]int
	// holds that are over, and have several acquires.
	ended map[string]bool
}

func (m model) porcupine() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
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
	case c.isEnd:
		if !isHeld {
			return true, s
		}
		return true, s.echoing(c, held.count).leaving(c, held, held.count)
	case !c.isKnown && c.f == "acquire":
		return true, s.echoing(c, 1)
	case !c.isKnown:
		if !isOwn {
			return true, s
		}
		return true, s.echoing(c, 1).leaving(c, held, 1)
	case c.isLate:
		return false, s
	case c.f == "release":
		if isOwn {
			return true, s.leaving(c, held, 1)
		}
		return s.echoes[owner{c.client, c.uid}] > 0, s.echoing(c, -1)
	case isHeld:
		isSame := !m.tokens || held.fence == c.fence
		held.count++
		return m.reentrant && isOwn && isSame && (held.kind == "exclusive" || held.kind == c.kind), s.with(c.uid, held)
	}
	granted := hold{c.client, c.kind, c.fence, c.weight, c.limit, 1, c.isReentered}
	return m.admits(s, c), s.with(c.uid, granted)
}

func (m model) admits(s state, c *call) bool {
	permits := c.weight
	for _, other := range s.holds {
		if c.kind != "permit" || other.kind != "permit" {
			if excludes(mode{other.kind, 0}, c) {
				return false
			}
			continue
		}
		permits += other.weight
		if other.limit != c.limit {
			return false
		}
	}
	if permits > c.limit || m.owners && s.ended[c.uid] || m.required && c.fence == "" {
		return false
	}
	for earlier, fence := range s.highest {
		if m.tokens && c.fence != "" && excludes(earlier, c) && !isHigher(c.fence, fence) {
			return false
		}
	}
	return true
}

func excludes(one mode, c *call) bool {
	if one.kind == "permit" && c.kind == "permit" {
		return one.weight+c.weight > c.limit
	}
	return one.kind != c.kind || one.kind == "exclusive"
}

func isHigher(one, other string) bool {
	if len(one) != len(other) {
		return len(one) > len(other)
	}
	return strings.Compare(one, other) > 0
}

func (s state) with(uid string, one hold) state {
	s.holds = cloned(s.holds)
	s.holds[uid] = one
	return s
}

// leaving takes entries from a hold, which is over with the last of them.
func (s state) leaving(c *call, held hold, entries int) state {
	if held.count -= entries; held.count > 0 {
		return s.with(c.uid, held)
	}
	s.holds = cloned(s.holds)
	delete(s.holds, c.uid)
	if held.isReentered {
		s.ended = cloned(s.ended)
		s.ended[c.uid] = true
	}
	if left := (mode{held.kind, held.weight}); held.fence != "" && isHigher(held.fence, s.highest[left]) {
		s.highest = cloned(s.highest)
		s.highest[left] = held.fence
	}
	return s
}

func (s state) echoing(c *call, more int) state {
	if more > 0 && !c.isRepeated {
		return s
	}
	s.echoes = cloned(s.echoes)
	whose := owner{c.client, c.uid}
	if s.echoes[whose] += more; s.echoes[whose] <= 0 {
		delete(s.echoes, whose)
	}
	return s
}

func cloned[K comparable, V any](given map[K]V) map[K]V {
	if given == nil {
		return map[K]V{}
	}
	return maps.Clone(given)
}
