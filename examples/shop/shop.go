// The shop of shop.c in Go: three workers answer requests, a flusher writes their cache to disk now and then.
//
//	go run shop.go -o shop.trace [fixed|stuck]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/trace"
	"sync"
	"time"
)

const (
	workers     = 3
	requests    = 12
	slowRequest = 7
)

type request struct {
	number int
	ctx    context.Context
	task   *trace.Task
}

type shop struct {
	cacheMu, logMu sync.Mutex
	done           sync.WaitGroup
	cache          [][]byte
	fixed, stuck   bool
	supplier       chan byte // what it sends arrives late
}

func (s *shop) supply() {
	defer s.done.Done()
	time.Sleep(80 * time.Millisecond)
	s.supplier <- 'x'
}

func (s *shop) flushOnce() {
	s.cacheMu.Lock()
	if s.fixed {
		s.cacheMu.Unlock()
	}
	time.Sleep(15 * time.Millisecond) // the disk
	if s.stuck {
		s.logMu.Lock()
		s.logMu.Unlock()
	}
	if !s.fixed {
		s.cacheMu.Unlock()
	}
}

func (s *shop) flush() {
	defer s.done.Done()
	for i := 0; i < 5; i++ {
		s.flushOnce()
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *shop) lookUp(r request) {
	defer trace.StartRegion(r.ctx, "look up").End()
	if s.stuck {
		s.logMu.Lock()
		defer s.logMu.Unlock()
	}
	s.cacheMu.Lock()
	s.cache = append(s.cache, make([]byte, 1<<20))
	if len(s.cache) > 3 {
		s.cache = s.cache[1:]
	}
	time.Sleep(time.Millisecond)
	s.cacheMu.Unlock()
	if r.number == slowRequest {
		<-s.supplier
	}
}

func (s *shop) answer(r request) {
	defer trace.StartRegion(r.ctx, "answer").End()
	trace.Log(r.ctx, "shop", fmt.Sprintf("request %d", r.number))
	time.Sleep(2 * time.Millisecond)
	r.task.End()
}

func (s *shop) work(queue <-chan request) {
	defer s.done.Done()
	for r := range queue {
		s.lookUp(r)
		s.answer(r)
	}
}

func main() {
	out := flag.String("o", "shop.trace", "the trace")
	flag.Parse()
	file, err := os.Create(*out)
	if err == nil {
		err = trace.Start(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := &shop{fixed: flag.Arg(0) == "fixed", stuck: flag.Arg(0) == "stuck", supplier: make(chan byte)}
	queue := make(chan request, requests)
	s.done.Add(2 + workers)
	go s.supply()
	go s.flush()
	for i := 0; i < workers; i++ {
		go s.work(queue)
	}
	for i := 1; i <= requests; i++ {
		time.Sleep(6 * time.Millisecond)
		ctx, task := trace.NewTask(context.Background(), "request")
		queue <- request{i, ctx, task}
	}
	close(queue)
	if s.stuck {
		time.Sleep(200 * time.Millisecond)
	} else {
		s.done.Wait()
	}
	trace.Stop()
	file.Close()
}
