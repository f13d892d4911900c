// A client process of `bench languages`: redsync, redislock and rueidislock on one task, which is the only argument.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"golang.org/x/sys/unix"
)

type task struct {
	Library   string  `json:"library"`
	Address   string  `json:"address"`
	Op        string  `json:"op"`
	Name      string  `json:"name"`
	Own       bool    `json:"own"`
	Lanes     int     `json:"lanes"`
	SectionMs float64 `json:"sectionMs"`
	TtlMs     int     `json:"ttlMs"`
}

type acquire func(name string) (release func(), err error)

const pollMs = 10

var ctx = context.Background()

// Milliseconds on the machine's monotonic clock.
func now() float64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at)
	return float64(at.Nano()) / 1e6
}

func sleepUntil(at float64) {
	if left := at - now(); left > 0 {
		time.Sleep(time.Duration(left * 1e6))
	}
}

func open(t task) acquire {
	ttl := time.Duration(t.TtlMs) * time.Millisecond
	if t.Library == "rueidislock" {
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{t.Address}},
			KeyMajority:    1,
			NoLoopTracking: true,
			KeyValidity:    ttl,
		})
		check(err)
		return func(name string) (func(), error) {
			_, cancel, err := locker.WithContext(ctx, name)
			return cancel, err
		}
	}
	client := redis.NewClient(&redis.Options{Addr: t.Address, PoolSize: 16})
	switch t.Library {
	case "raw go-redis":
		script := redis.NewScript("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")
		return func(name string) (func(), error) {
			id := make([]byte, 15)
			_, _ = rand.Read(id)
			value := hex.EncodeToString(id)
			for {
				took, err := client.SetNX(ctx, name, value, ttl).Result()
				if err != nil {
					return nil, err
				}
				if took {
					return func() { check(script.Run(ctx, client, []string{name}, value).Err()) }, nil
				}
				time.Sleep(pollMs * time.Millisecond)
			}
		}
	case "redsync":
		sync := redsync.New(goredis.NewPool(client))
		return func(name string) (func(), error) {
			mutex := sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(1<<30))
			if err := mutex.Lock(); err != nil {
				return nil, err
			}
			return func() { _, _ = mutex.Unlock() }, nil
		}
	case "redislock":
		locker := redislock.New(client)
		retry := redislock.LinearBackoff(pollMs * time.Millisecond)
		return func(name string) (func(), error) {
			// Without a deadline it waits for one ttl at most.
			within, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			lock, err := locker.Obtain(within, name, ttl, &redislock.Options{RetryStrategy: retry})
			if err != nil {
				return nil, err
			}
			return func() { _ = lock.Release(ctx) }, nil
		}
	}
	panic("There is no library " + t.Library)
}

func main() {
	var t task
	check(json.Unmarshal([]byte(os.Args[1]), &t))
	take := open(t)
	nameOf := func(lane int) string {
		if t.Own {
			return fmt.Sprintf("%s:%d", t.Name, lane)
		}
		return t.Name
	}
	if t.Op == "hold" {
		hold(t, take, nameOf)
		return
	}
	var guard sync.Mutex
	var entries []string
	waiting := make([]float64, t.Lanes)
	warm := t.Name + ":warm-up:" + fmt.Sprint(os.Getpid())
	release, err := take(warm)
	check(err)
	release()
	// It is ready, and reads when to begin and to end.
	fmt.Println("ready")
	var startAt, stopAt float64
	_, err = fmt.Scan(&startAt, &stopAt)
	check(err)
	sleepUntil(startAt)
	var lanes sync.WaitGroup
	for lane := 0; lane < t.Lanes; lane++ {
		lanes.Add(1)
		go func() {
			defer lanes.Done()
			for now() < stopAt {
				asked := now()
				guard.Lock()
				waiting[lane] = asked
				guard.Unlock()
				release, err := take(nameOf(lane))
				check(err)
				entered := now()
				if t.SectionMs > 0 {
					time.Sleep(time.Duration(t.SectionMs * 1e6))
				}
				left := now()
				release()
				guard.Lock()
				waiting[lane] = 0
				entries = append(entries, fmt.Sprintf("[%d,%.3f,%.3f,%.3f]", lane, asked, entered, left))
				guard.Unlock()
			}
		}()
	}
	done := make(chan struct{})
	go func() { lanes.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Duration((stopAt - now() + 200) * 1e6)):
	}
	guard.Lock()
	unserved := []string{}
	for lane, asked := range waiting {
		if asked > 0 {
			unserved = append(unserved, fmt.Sprintf("[%d,%.3f]", lane, asked))
		}
	}
	fmt.Printf("{\"entries\":[%s],\"unserved\":[%s]}\n", strings.Join(entries, ","), strings.Join(unserved, ","))
	os.Exit(0)
}

// Takes its locks, says so, and keeps them until it is killed.
func hold(t task, take acquire, nameOf func(int) string) {
	var lanes sync.WaitGroup
	next := make(chan int)
	for worker := 0; worker < 16; worker++ {
		lanes.Add(1)
		go func() {
			defer lanes.Done()
			for lane := range next {
				_, err := take(nameOf(lane))
				check(err)
			}
		}()
	}
	for lane := 0; lane < t.Lanes; lane++ {
		next <- lane
	}
	close(next)
	lanes.Wait()
	fmt.Println("held")
	select {}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
