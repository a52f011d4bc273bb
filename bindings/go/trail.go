// Package trail asks the command trail about execution traces: for findings, the summary, and rows in SQL.
//
//	findings, err := trail.File("app.trace").Findings(ctx)
//
// Every call starts the command and reads the trace anew. Of a damaged trace, the answer covers the part before the damage, and the
// error is an *Error with Code 1. A context that ends kills the command.
package trail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// Version is the version of trail that this package belongs to.
const Version = "0.1.0"

// Command is the command to start: a path, or a name to look up in PATH. Set it before the first call.
var Command = "trail"

// An Error is the command's: its message, and its exit status.
type Error struct {
	Code    int // 1: the trace is bad; 2: the call is wrong; 3: reading or writing failed
	Message string
}

func (e *Error) Error() string { return e.Message }

// A Trace is where a trace is read from.
type Trace struct {
	path   string
	reader io.Reader
}

// File returns the trace in a file, plain or compressed. Nothing is read yet.
func File(path string) Trace { return Trace{path: path} }

// From returns the trace that r delivers, which can be read once.
func From(r io.Reader) Trace { return Trace{reader: r} }

// A Finding is a problem found in a trace. Text is Heading, Details, Bound and Remedy joined.
type Finding struct {
	Kind    string `json:"kind"`
	Text    string `json:"text"`
	Heading string `json:"heading"`
	Details string `json:"details"`
	Bound   string `json:"bound,omitempty"` // "At most 3.2 ms of 10 ms would be saved."; empty: none, or Replayed says more
	Remedy  string `json:"remedy"`
	// What a replay without the problem has shown, and the options of trail whatif that ask for it; empty: not replayed.
	Replayed string   `json:"replayed,omitempty"`
	WhatIf   []string `json:"whatif,omitempty"`
	// The replay's main figure, in ns, in the trace and without the problem: of "end", the time up to the end, "median" and "p99", of the
	// length of tasks, "waits", the time in which threads wait for each other.
	ReplayedOf     string `json:"replayed_of,omitempty"`
	ReplayedNowNs  int64  `json:"replayed_now_ns,omitempty"`
	ReplayedThenNs int64  `json:"replayed_then_ns,omitempty"`

	Weight float64 `json:"weight"`  // the time that the problem took, usually GainNs, as a share; plus 1 for a hang, 2 for a deadlock
	GainNs int64   `json:"gain_ns"` // the most time that could be saved without the problem
	// The gain in words, as "a replay saves", "199 ms"; empty: none.
	GainTitle  string `json:"gain_title,omitempty"`
	GainFigure string `json:"gain_figure,omitempty"`

	Function  string `json:"function"`
	Object    string `json:"object"`
	Region    string `json:"region"`
	BeginNs   *int64 `json:"begin_ns"` // the worst case; nil: none in particular
	EndNs     *int64 `json:"end_ns"`
	Goroutine *int64 `json:"goroutine"`
	Task      *int64 `json:"task"`
}

// A Summary is what trail summary shows. Times are in ns of the trace's own clock.
type Summary struct {
	OriginNs        int64     `json:"origin_ns"` // of the first event
	BeginNs         int64     `json:"begin_ns"`
	EndNs           int64     `json:"end_ns"`
	Events          uint64    `json:"events"`
	Goroutines      uint64    `json:"goroutines"`
	GoroutinesAlive uint64    `json:"goroutines_alive"` // at the end
	Tiles           []Tile    `json:"tiles"`
	Findings        []Finding `json:"findings"`
	Largest         string    `json:"largest"`
	Groups          []Group   `json:"groups"`  // of goroutines, by start function
	Regions         []Group   `json:"regions"` // by name
	Tasks           []Tasks   `json:"tasks"`

	Raw json.RawMessage `json:"-"` // all of the answer
}

// A Tile is one of the figures at the top of the summary.
type Tile struct {
	Key   string `json:"key"`
	Title string `json:"title"`
	Value int64  `json:"value"`
	Text  string `json:"text"`
	Note  string `json:"note"`
}

// A Group is where the time of goroutines or regions with one name went.
type Group struct {
	Name           string           `json:"name"`
	Count          uint64           `json:"count"`
	Unfinished     uint64           `json:"unfinished"`
	ExecNs         int64            `json:"exec_ns"`
	SchedWaitNs    int64            `json:"sched_wait_ns"`
	SyscallNs      int64            `json:"syscall_ns"`
	SyscallBlockNs int64            `json:"syscall_block_ns"`
	TotalNs        int64            `json:"total_ns"`
	BlockNs        map[string]int64 `json:"block_ns"` // by reason
	RangeNs        map[string]int64 `json:"range_ns"` // by name
}

// Tasks are the tasks of one type.
type Tasks struct {
	Name    string `json:"name"`
	Begun   uint64 `json:"begun"`
	Ended   uint64 `json:"ended"`
	Longest struct {
		Ns      int64 `json:"ns"`
		BeginNs int64 `json:"begin_ns"`
		Task    int64 `json:"task"`
	} `json:"longest"`
}

// Findings returns what is wrong in the trace: what would gain most comes first.
func (t Trace) Findings(ctx context.Context) ([]Finding, error) {
	summary, err := t.Summary(ctx)
	if summary == nil {
		return nil, err
	}
	return summary.Findings, err
}

// Summary returns the summary of the trace; nil if nothing could be read.
func (t Trace) Summary(ctx context.Context) (summary *Summary, err error) {
	err = run(ctx, []string{"summary", "--json"}, []Trace{t}, nil, func(out io.Reader) error {
		var raw json.RawMessage
		if err := json.NewDecoder(out).Decode(&raw); err != nil {
			return err
		}
		summary = &Summary{Raw: raw}
		return json.Unmarshal(raw, summary)
	})
	return summary, err
}

// Query returns the rows of a query over traces: see trail help sql. A row is decoded from JSON, into a struct whose tags are
// the names of the columns, or into a map[string]any.
func Query[T any](ctx context.Context, query string, traces ...Trace) (rows []T, err error) {
	err = Each(ctx, query, func(row T) error {
		rows = append(rows, row)
		return nil
	}, traces...)
	return rows, err
}

// Each calls visit with each row of a query as it arrives. An error of visit ends the query and is returned.
func Each[T any](ctx context.Context, query string, visit func(T) error, traces ...Trace) error {
	return run(ctx, []string{"sql", "--json"}, traces, []string{query}, func(out io.Reader) error {
		rows := json.NewDecoder(out)
		if _, err := rows.Token(); err != nil {
			return err
		}
		for rows.More() {
			var row T
			if err := rows.Decode(&row); err != nil {
				return err
			}
			if err := visit(row); err != nil {
				return err
			}
		}
		_, err := rows.Token()
		return err
	})
}

// An Int is an integer column of a query, of any size: in JSON, integers beyond 2^53 are texts, such as the ns of wall_ns().
type Int int64

// UnmarshalJSON accepts a number, and a number as text.
func (i *Int) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*i = Int(n)
	return err
}

// input is the reader of a trace, and the error with which it ended.
type input struct {
	io.Reader
	err error
}

func (in *input) Read(p []byte) (n int, err error) {
	n, err = in.Reader.Read(p)
	if err != io.EOF {
		in.err = err
	}
	return n, err
}

// arguments returns the paths of the traces, and the reader of the one that is "-".
func arguments(traces []Trace) (paths []string, reader io.Reader, err error) {
	for _, t := range traces {
		switch {
		case t.reader != nil && reader != nil:
			return nil, nil, errors.New("trail: at most one trace may come from a reader")
		case t.reader != nil:
			t.path, reader = "-", t.reader
		case t.path == "-":
			t.path = "./-"
		}
		paths = append(paths, t.path)
	}
	return paths, reader, nil
}

// run starts the command with args, the traces and last, and passes its output to decode. If several things fail, the error
// is that of the context, the trace's reader, decode, the command, in this order.
func run(ctx context.Context, args []string, traces []Trace, last []string, decode func(io.Reader) error) error {
	paths, reader, err := arguments(traces)
	if err != nil {
		return err
	}
	alive, kill := context.WithCancel(ctx)
	defer kill()
	args = append(append(append(args, "--"), paths...), last...)
	cmd := exec.CommandContext(alive, Command, args...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	unread := make(chan error, 1)
	if reader != nil {
		// Not cmd.Stdin: Wait would wait for a reader that never ends.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			in := input{Reader: reader}
			_, _ = io.Copy(stdin, &in)
			unread <- in.err // before the command can see the end
			_ = stdin.Close()
		}()
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	decoded := decode(out)
	if decoded == io.EOF || decoded == io.ErrUnexpectedEOF {
		decoded = nil // the command has failed, and says why
	} else if decoded != nil {
		kill()
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case failed := <-unread:
		if failed != nil {
			return failed
		}
	default:
	}
	var exit *exec.ExitError
	if decoded == nil && errors.As(err, &exit) {
		message := strings.TrimSpace(messages.String())
		if message == "" {
			message = exit.Error()
		}
		return &Error{exit.ExitCode(), message}
	}
	if decoded != nil {
		return decoded
	}
	return err
}
