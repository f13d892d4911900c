package main

import (
	"bufio"
	"log"
	"math"
	"os"
	"regexp"
	"strconv"
)

// call is a call of a history that may have had an effect, at a time from..to.
type call struct {
	mode
	f, client, uid, fence string
	// isKnown: the call succeeded. isEnd: no user's release, but the end of a lease.
	isKnown, isEnd bool
	// isLate: it began after its holder had noted the loss. isRepeated: a release that succeeded later may tell of what this call did.
	// isReentered: the hold has several acquires. isForeign: another process acquired it.
	isLate, isRepeated, isReentered, isForeign bool
	from, to                                   int64
}

var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s,{}\[\]"]+`)

// parse reads an event: the keys of its map and of the map that is its value, none of which have the same name.
func parse(line string) map[string]string {
	event := map[string]string{}
	words := word.FindAllString(line, -1)
	for ; len(words) > 1; words = words[2:] {
		if words[0] == ":value" && words[1][0] == ':' {
			words = words[1:]
		}
		text, err := strconv.Unquote(words[1])
		if err != nil {
			text = words[1]
		}
		event[words[0]] = text
	}
	return event
}

// readHistory gives the calls of a file by the names of their locks.
func readHistory(file string) map[string][]*call {
	opened, err := os.Open(file)
	if err != nil {
		log.Fatal(err)
	}
	defer opened.Close()
	pending := map[string]map[string]string{}
	locks := map[string][]*call{}
	lines := bufio.NewScanner(opened)
	for lines.Scan() {
		event := parse(lines.Text())
		begin, isPending := pending[event[":process"]]
		switch isInvoke := event[":type"] == ":invoke"; {
		case isPending == isInvoke:
			log.Fatalf("%s: a process makes two calls at once, or ends none: %s", file, lines.Text())
		case isInvoke:
			pending[event[":process"]] = event
			continue
		case event[":type"] != ":fail":
			note(locks, begin, event)
		}
		delete(pending, event[":process"])
	}
	if lines.Err() != nil {
		log.Fatalf("%s: %v", file, lines.Err())
	}
	for _, begin := range pending {
		note(locks, begin, begin)
	}
	for _, calls := range locks {
		narrow(calls)
	}
	return locks
}

// note adds a call.
func note(locks map[string][]*call, begin, end map[string]string) {
	number := func(text string) int64 {
		parsed, err := strconv.ParseInt(text, 10, 64)
		if err != nil && text != "" {
			log.Fatalf("%v: %v", end, err)
		}
		return parsed
	}
	one := &call{
		mode: mode{end[":mode"], number(end[":weight"]), number(end[":limit"])},
		f:    end[":f"], client: end[":client"], uid: end[":uid"], fence: end[":fence"],
		isKnown: end[":type"] == ":ok", isEnd: end[":cause"] != "",
		from: number(begin[":time"]), to: number(end[":time"]),
	}
	if one.uid == "" && one.isKnown || one.f != ":acquire" && one.f != ":release" {
		log.Fatalf("no call of a lock: %v", end)
	}
	if !one.isKnown && !one.isEnd {
		one.to = math.MaxInt64
	}
	// An acquire whose hold nobody knows permits most where it never happened.
	if one.uid != "" {
		locks[end[":lock"]] = append(locks[end[":lock"]], one)
	}
}

// narrow finds what the other calls of a hold say about each call. A call with an unknown outcome that ended a hold permits most where it
// did so at once, unless the hold was entered again afterwards. That keeps the search short.
func narrow(calls []*call) {
	holds := map[string][]*call{}
	for _, one := range calls {
		holds[one.uid] = append(holds[one.uid], one)
	}
	for _, one := range calls {
		isEnteredLater := false
		for _, other := range holds[one.uid] {
			isOverLater := other.to > one.from
			switch {
			case other == one:
			case other.isEnd:
				one.isLate = one.isLate || one.from > other.to
			case other.isKnown && other.f == ":acquire":
				one.isReentered = one.isReentered || one.f == ":acquire"
				isEnteredLater = isEnteredLater || isOverLater
				one.isForeign = one.isForeign || one.client != other.client
			case other.isKnown:
				one.isRepeated = one.isRepeated || isOverLater && one.client == other.client
			}
		}
		if !one.isKnown && !one.isEnd && (one.f == ":acquire" || !isEnteredLater) {
			one.to = one.from
		}
	}
}
