// judge reads histories of locks in Jepsen's EDN, and has Porcupine look for an order of the calls in which a lock can have answered so. It
// prints a line of JSON for each lock, with the weakest model that no order satisfies.
package main

import (
	"encoding/json"
	"flag"
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
	flag.Parse()
	output := json.NewEncoder(os.Stdout)
	for _, file := range flag.Args() {
		for lock, calls := range readHistory(file) {
			model, result := judge(calls, *reentrant, *fenced)
			_ = output.Encode(verdict{file, lock, len(calls), model, result})
		}
	}
}

// judge gives the strongest model where it accepts the calls, and else the weakest one that refuses them.
func judge(calls []*call, reentrant, fenced bool) (name string, result porcupine.CheckResult) {
	kind := "mutex"
	operations := make([]porcupine.Operation, len(calls))
	for index, one := range calls {
		operations[index] = porcupine.Operation{Input: one, Call: one.from, Return: one.to}
		switch one.kind {
		case ":permit":
			kind = "permits"
		case ":shared":
			kind = "readers-writer lock"
		}
	}
	if reentrant {
		kind = "reentrant " + kind
	}
	// Each model refuses what the one before it refuses, and more: the strongest one decides, and the others show what it takes.
	models := []model{
		{name: kind, reentrant: reentrant},
		{name: "owner-aware " + kind, reentrant: reentrant, owners: true},
		{name: "fenced " + kind, reentrant: reentrant, owners: true, tokens: true, required: fenced},
	}
	for _, one := range append(models[2:], models...) {
		name, result = one.name, porcupine.CheckOperationsTimeout(one.porcupine(), operations, time.Minute)
		if one.tokens == (result == porcupine.Ok) {
			break
		}
	}
	return name, result
}
