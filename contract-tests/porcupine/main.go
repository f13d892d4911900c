// judge reads histories of locks in Jepsen's EDN, and has Porcupine look for an order of the calls in which a lock can have answered so. It
// prints a line of JSON for each lock, with the weakest model that no order satisfies.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type verdict struct {
	File   string                `json:"file"`
	Lock   string                `json:"lock"`
	Calls  int                   `json:"calls"`
	Model  string                `json:"model"`
	Result porcupine.CheckResult `json:"result"`
}

func main() {
	reentrant := flag.Bool("reentrant", false, "a hold may be entered again")
	fenced := flag.Bool("fenced", false, "every hold has a token")
	limit := flag.Duration("limit", time.Minute, "for each lock and model")
	flag.Parse()
	output := json.NewEncoder(os.Stdout)
	for _, file := range flag.Args() {
		locks, err := readHistory(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		for lock, calls := range locks {
			one := judge(calls, *reentrant, *fenced, *limit)
			one.File, one.Lock = file, lock
			_ = output.Encode(one)
		}
	}
}

func judge(calls []*call, reentrant, fenced bool, limit time.Duration) verdict {
	kind := "mutex"
	for _, one := range calls {
		if one.kind == "permit" {
			kind = "permits"
		} else if one.kind == "shared" {
			kind = "readers-writer lock"
		}
	}
	operations := make([]porcupine.Operation, len(calls))
	for index, one := range calls {
		operations[index] = porcupine.Operation{Input: one, Call: one.from, Return: one.to}
	}
	// Each model refuses what the one before it refuses, and more.
	models := []model{
		{kind, false, reentrant, false, false},
		{"owner-aware " + kind, true, reentrant, false, false},
		{"fenced " + kind, true, reentrant, true, fenced},
	}
	result := verdict{Calls: len(calls)}
	check := func(one model) bool {
		result.Model = one.name
		if reentrant {
			result.Model = "reentrant " + one.name
		}
		result.Result = porcupine.CheckOperationsTimeout(one.porcupine(), operations, limit)
		return result.Result == porcupine.Ok
	}
	if check(models[2]) {
		return result
	}
	for _, one := range models {
		if !check(one) {
			break
		}
	}
	return result
}
