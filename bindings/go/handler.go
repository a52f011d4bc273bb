package trail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Handler answers requests with what trail finds in a snapshot of the flight recorder: the JSON of trail summary, or, if the
// query has format=html or a browser asks, the page of trail report. It makes one snapshot at a time, and refuses other
// requests meanwhile (503).
//
//	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{})
//	recorder.Start()
//	http.Handle("/debug/trail", &trail.Handler{Recorder: recorder})
//
// An answer shows the program's functions, logs and waits, as net/http/pprof does: serve it only where that may be seen.
type Handler struct {
	Recorder io.WriterTo   // a *runtime/trace.FlightRecorder (Go 1.25), which is started
	MaxBytes int64         // limit of the snapshot, and of the answer; 0: 64 MiB
	Timeout  time.Duration // limit of the snapshot and its analysis; 0: 30 s

	busy sync.Mutex
}

// errTooLarge is the error of a write beyond a limit.
var errTooLarge = errors.New("larger than the limit")

// limited keeps at most max bytes, until its context ends.
type limited struct {
	ctx  context.Context
	max  int64
	kept bytes.Buffer
}

func (l *limited) Write(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(l.kept.Len())+int64(len(p)) > l.max {
		return 0, errTooLarge
	}
	return l.kept.Write(p)
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	args, kind := []string{"summary", "--json"}, "application/json"
	format := r.URL.Query().Get("format")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	case format == "html" || format == "" && strings.Contains(r.Header.Get("Accept"), "text/html"):
		args, kind = []string{"report"}, "text/html; charset=utf-8"
	case format != "" && format != "json":
		http.Error(w, "format is json or html", http.StatusBadRequest)
		return
	}
	answer, err := h.answer(r.Context(), args)
	if err != nil {
		http.Error(w, err.Error(), status(err))
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(answer)
}

var errBusy = errors.New("another snapshot is being analysed")

// status returns the HTTP status of an error.
func status(err error) int {
	switch {
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// answer runs the command with a snapshot as its input.
func (h *Handler) answer(ctx context.Context, args []string) ([]byte, error) {
	if !h.busy.TryLock() {
		return nil, errBusy
	}
	defer h.busy.Unlock()
	timeout, max := h.Timeout, h.MaxBytes
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	if max <= 0 {
		max = 64 << 20
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	snapshot := limited{ctx: ctx, max: max}
	if _, err := h.Recorder.WriteTo(&snapshot); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	answer := limited{ctx: ctx, max: max}
	err := run(ctx, args, []Trace{From(&snapshot.kept)}, nil, func(out io.Reader) error {
		_, err := io.Copy(&answer, out)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	return answer.kept.Bytes(), nil
}
