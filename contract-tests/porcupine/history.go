package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
)

// call is a call of a history that may have had an effect, in the time in which it had it.
type call struct {
	f, client, uid, kind, fence string
	weight, limit               int
	// isKnown: the call succeeded. isEnd: no user's release, but the end of a lease.
	isKnown, isEnd bool
	// isLate: it began after the holder had noted its loss.
	isLate bool
	// isRepeated: a release that succeeded later may tell of what this call did. isReentered: the hold has several acquires.
	isRepeated, isReentered bool
	from, to                int64
}

// readHistory gives the calls of a file by the names of their locks.
func readHistory(file string) (map[string][]*call, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	reader := ednReader{bufio.NewReader(opened)}
	pending := map[string]map[string]any{}
	locks := map[string][]*call{}
	for {
		value, err := reader.next()
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		event, ok := value.(map[string]any)
		if err != nil || !ok {
			return nil, fmt.Errorf("%s: no history: %v %w", file, value, err)
		}
		process, _ := event["process"].(string)
		begin, isPending := pending[process]
		switch kind := event["type"]; {
		case kind == keyword("invoke") && !isPending:
			pending[process] = event
			continue
		case kind == keyword("invoke") || !isPending:
			return nil, fmt.Errorf("%s: process %s makes two calls at once, or ends none: %v", file, process, event)
		case kind != keyword("fail"):
			err = note(locks, begin, event)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		delete(pending, process)
	}
	for _, begin := range pending {
		if err := note(locks, begin, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, calls := range locks {
		narrow(calls)
	}
	return locks, nil
}

// note adds a call. Without an end its outcome is unknown.
func note(locks map[string][]*call, begin, end map[string]any) error {
	f, _ := begin["f"].(keyword)
	one := &call{f: string(f), isKnown: end["type"] == keyword("ok")}
	value := begin
	if end != nil {
		value = end
	}
	details, _ := value["value"].(map[string]any)
	one.client, _ = details["client"].(string)
	one.uid, _ = details["uid"].(string)
	one.fence, _ = details["fence"].(string)
	kind, _ := details["mode"].(keyword)
	one.kind = string(kind)
	cause, _ := details["cause"].(keyword)
	one.isEnd = cause != ""
	one.weight, one.limit = number(details["weight"]), number(details["limit"])
	var err error
	if one.from, err = strconv.ParseInt(fmt.Sprint(begin["time"]), 10, 64); err != nil {
		return err
	}
	one.to = math.MaxInt64
	if one.isKnown || one.isEnd {
		if one.to, err = strconv.ParseInt(fmt.Sprint(end["time"]), 10, 64); err != nil {
			return err
		}
	}
	if one.uid == "" && one.isKnown || one.f != "acquire" && one.f != "release" {
		return fmt.Errorf("no call of a lock: %v", begin)
	}
	lock, _ := details["lock"].(string)
	// An acquire whose hold nobody knows permits most where it never happened.
	if one.uid != "" {
		locks[lock] = append(locks[lock], one)
	}
	return nil
}

func number(value any) int {
	text, _ := value.(string)
	parsed, _ := strconv.Atoi(text)
	return parsed
}

// narrow finds what the other calls of a hold say about each call. A call with an unknown outcome that ended a hold permits most where it
// did so at once, unless the hold was entered again afterwards. That keeps the search short.
func narrow(calls []*call) {
	holds := map[string][]*call{}
	for _, one := range calls {
		holds[one.uid] = append(holds[one.uid], one)
	}
	for _, one := range calls {
		isEnteredLater, isForeign := false, false
		for _, other := range holds[one.uid] {
			isOverLater := other.to > one.from
			switch {
			case other == one:
			case other.isEnd:
				one.isLate = one.isLate || one.from > other.to
			case other.isKnown && other.f == "acquire":
				one.isReentered = one.isReentered || one.f == "acquire"
				isEnteredLater = isEnteredLater || isOverLater
				isForeign = isForeign || one.f == "acquire" && one.client != other.client
			case other.isKnown:
				one.isRepeated = one.isRepeated || isOverLater && one.client == other.client
			}
		}
		// Nobody enters the hold of another process.
		one.isRepeated = one.isRepeated && !isForeign
		if !one.isKnown && !one.isEnd && (one.f == "acquire" || !isEnteredLater) {
			one.to = one.from
		}
	}
}
