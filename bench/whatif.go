// Programs in Go for bench/whatif: each as it is, and with a change that trail whatif can predict.
//
// usage: whatif PAIR base|changed [TRACE]
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/trace"
	"sync"
	"time"
)

const rounds = 40

var changed bool

// work takes about so many microseconds of CPU time.
//
//go:noinline
func work(us int) uint64 {
	x := uint64(us)
	for i := 0; i < us*500; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func base(us int) int {
	if changed {
		return us / 2
	}
	return us
}

func together(functions ...func()) {
	var all sync.WaitGroup
	for _, f := range functions {
		all.Add(1)
		go func(f func()) {
			defer all.Done()
			f()
		}(f)
	}
	all.Wait()
}

// Locks and channels

var mu sync.Mutex

func update() {
	for i := 0; i < rounds; i++ {
		mu.Lock()
		work(base(4000))
		mu.Unlock()
		work(1000)
	}
}

func mutexHalved() { together(update, update) }

func sleepInLock() {
	for i := 0; i < rounds/3; i++ {
		mu.Lock()
		time.Sleep(time.Duration(base(12)) * time.Millisecond)
		mu.Unlock()
		work(1000)
	}
}

func sleepHalved() { together(sleepInLock, sleepInLock, sleepInLock) }

var items = make(chan int)

func produce() {
	for i := 0; i < rounds; i++ {
		work(1500)
		items <- i
	}
	close(items)
}

func consume() {
	for range items {
		work(base(6000))
	}
}

func slowConsumer() { together(produce, consume) }

var answers = make(chan int)
var workers sync.WaitGroup

// answer waits for a peer, as a query of a database does.
func answer() {
	defer workers.Done()
	for i := range items {
		time.Sleep(6 * time.Millisecond)
		work(200)
		answers <- i
	}
}

func ask() {
	for i := 0; i < 3*rounds; i++ {
		items <- i
	}
	close(items)
}

func moreWorkers() {
	count := 2
	if changed {
		count = 6
	}
	for i := 0; i < count; i++ {
		workers.Add(1)
		go answer()
	}
	go ask()
	for i := 0; i < 3*rounds; i++ {
		<-answers
	}
	workers.Wait()
}

// CPUs and the garbage collector

var fan sync.WaitGroup

func slow() {
	defer fan.Done()
	work(base(300000))
}

func quick() {
	defer fan.Done()
	work(60000)
}

func fanOut() {
	fan.Add(4)
	go slow()
	go quick()
	go quick()
	go quick()
	fan.Wait()
}

func quarter() { work(100000) }

func twoProcs() {
	if !changed {
		runtime.GOMAXPROCS(1)
	}
	together(quarter, quarter, quarter, quarter)
}

type node struct{ left, right *node }

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{tree(depth - 1), tree(depth - 1)}
}

var kept []*node

func allocate() {
	for i := 0; i < 20; i++ {
		tree(14)
	}
}

// touch makes memory for all that is allocated later: page faults of new memory would cost more than its collection.
func touch() {
	memory := make([]byte, 32<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
}

func garbage() {
	touch()
	runtime.GC()
	debug.SetGCPercent(10)
	if changed {
		debug.SetGCPercent(-1)
	}
	kept = append(kept, tree(18))
	together(allocate, allocate)
}

var pairs = map[string]func(){
	"go-mutex-halved":  mutexHalved,
	"go-sleep-halved":  sleepHalved,
	"go-slow-consumer": slowConsumer,
	"go-more-workers":  moreWorkers,
	"go-fan-out":       fanOut,
	"go-two-procs":     twoProcs,
	"go-no-gc":         garbage,
}

func main() {
	if len(os.Args) < 3 || pairs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: whatif PAIR base|changed [TRACE]")
		os.Exit(2)
	}
	changed = os.Args[2] == "changed"
	if len(os.Args) > 3 {
		file, err := os.Create(os.Args[3])
		if err == nil {
			err = trace.Start(file)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		defer file.Close()
		defer trace.Stop()
	}
	pairs[os.Args[1]]()
}
