// Takes and frees locks of redsync as it is told: the protocol is in ../lock-process.ts.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func main() {
	ttlMs, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	library := redsync.New(goredis.NewPool(redis.NewClient(&redis.Options{Addr: os.Args[1]})))
	var held *redsync.Mutex
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Split(lines.Text(), " ")
		if words[0] == "free" {
			if ok, err := held.Unlock(); !ok {
				fmt.Println("failed", err)
			} else {
				fmt.Println("freed")
			}
			continue
		}
		waitMs, err := strconv.Atoi(words[2])
		if err != nil {
			panic(err)
		}
		// By default it tries 32 times; here the context ends the tries.
		ttl := redsync.WithExpiry(time.Duration(ttlMs) * time.Millisecond)
		held = library.NewMutex(words[1], ttl, redsync.WithTries(1<<30))
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(waitMs)*time.Millisecond)
		if err := held.LockContext(ctx); err != nil {
			fmt.Println("failed", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("taken")
		}
		cancel()
	}
}
