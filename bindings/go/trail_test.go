package trail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const (
	shop  = "../../examples/traces/shop-c.trace"
	load  = "../../examples/traces/load-go1.19.trace"
	cut23 = "../../examples/traces/load-go1.23.trace"
)

// TestMain takes the command from the environment.
func TestMain(m *testing.M) {
	if command := os.Getenv("TRAIL"); command != "" {
		Command = command
	}
	os.Exit(m.Run())
}

func good(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, ours, right any) {
	t.Helper()
	if !reflect.DeepEqual(ours, right) {
		t.Fatalf("%#v, not %#v", ours, right)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	good(t, err)
	return data
}

// command returns the command's output for a good trace.
func command(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(Command, args...).Output()
	good(t, err)
	return out
}

// plain returns a value as JSON's own types.
func plain(t *testing.T, value any) any {
	t.Helper()
	text, ok := value.([]byte)
	if !ok {
		var err error
		text, err = json.Marshal(value)
		good(t, err)
	}
	var result any
	good(t, json.Unmarshal(text, &result))
	return result
}

// without removes from right, recursively, what ours leaves out by design, and from ours what is nil or empty because it is
// not in right.
func without(ours, right any, leftOut map[string]bool) {
	switch right := right.(type) {
	case map[string]any:
		mine, _ := ours.(map[string]any)
		for key := range right {
			if leftOut[key] {
				delete(right, key)
			} else {
				without(mine[key], right[key], leftOut)
			}
		}
		for key, value := range mine {
			if _, there := right[key]; !there && (value == nil || value == "") {
				delete(mine, key)
			}
		}
	case []any:
		mine, _ := ours.([]any)
		for i := range mine {
			if i < len(right) {
				without(mine[i], right[i], leftOut)
			}
		}
	}
}

// All values of the command's JSON arrive, except those that Summary leaves to Raw.
func TestSummaryIsThatOfTheCommand(t *testing.T) {
	leftOut := map[string]bool{"activity": true, "processes": true, "recording": true, "waits": true, "gc": true, "heap": true,
		"distributions": true, "spread": true, "command": true}
	for _, path := range []string{shop, load, cut23} {
		summary, err := File(path).Summary(context.Background())
		good(t, err)
		text := command(t, "summary", "--json", path)
		equal(t, plain(t, []byte(summary.Raw)), plain(t, text))
		ours, right := plain(t, summary), plain(t, text)
		for _, tile := range right.(map[string]any)["tiles"].([]any) {
			for _, key := range []string{"begin_ns", "end_ns", "goroutine", "task"} {
				delete(tile.(map[string]any), key)
			}
		}
		without(ours, right, leftOut)
		equal(t, ours, right)
	}
}

func TestFindingsOfAFileAndAReaderAreTheSame(t *testing.T) {
	findings, err := File(shop).Findings(context.Background())
	good(t, err)
	if len(findings) == 0 || findings[0].Function != "flush_once" || *findings[0].Goroutine != 6 || findings[0].Task != nil {
		t.Fatal(findings)
	}
	read, err := From(bytes.NewReader(content(t, shop))).Findings(context.Background())
	good(t, err)
	equal(t, read, findings)
}

// needDuckDB skips a test of SQL where trail has no engine for it.
func needDuckDB(t *testing.T) {
	t.Helper()
	if _, err := Query[any](context.Background(), "select 1", File(shop)); err != nil && strings.Contains(err.Error(), "DuckDB") {
		t.Skip("no DuckDB")
	}
}

func TestRowsHaveTheirTypes(t *testing.T) {
	needDuckDB(t)
	type row struct {
		File    string   `json:"file"`
		Events  uint64   `json:"events"`
		Seconds float64  `json:"seconds"`
		Wall    *Int     `json:"wall"`
		Large   Int      `json:"large"`
		List    []string `json:"list"`
	}
	rows, err := Query[row](context.Background(), `select file, count(*) as events, 0.5 as seconds, max(wall_ns(time_ns, file)) as wall,
		9007199254740993 as large, ['a', 'b'] as list from events group by file order by file`, File(load), From(bytes.NewReader(content(t, shop))))
	good(t, err)
	summary, err := File(shop).Summary(context.Background())
	good(t, err)
	equal(t, len(rows), 2)
	read, file := rows[0], rows[1]
	equal(t, []any{read.File, read.Events, read.Seconds, read.Large, read.List}, []any{"-", summary.Events, 0.5, Int(1<<53 + 1), []string{"a", "b"}})
	// Beyond 2^53, so that it is a text; the trace of Go 1.19 has no wall clock.
	if *read.Wall < 1<<53 || file.Wall != nil || file.File != load {
		t.Fatal(rows)
	}
}

func TestVisitEndsAQuery(t *testing.T) {
	needDuckDB(t)
	enough := errors.New("enough")
	n := 0
	err := Each(context.Background(), "select range from range(100000000)", func(map[string]int) error {
		if n++; n == 3 {
			return enough
		}
		return nil
	}, File(shop))
	equal(t, err, enough)
	equal(t, n, 3)
	_, err = Query[struct {
		State int `json:"state"`
	}](context.Background(), "select 'x' as state", File(shop))
	var mismatch *json.UnmarshalTypeError
	equal(t, errors.As(err, &mismatch), true)
}

// code returns the exit status in an error of the command, whose message must have a text.
func code(t *testing.T, err error, text string) int {
	t.Helper()
	var failed *Error
	if !errors.As(err, &failed) || !strings.Contains(failed.Message, text) {
		t.Fatalf("%T %v, not %s", err, err, text)
	}
	return failed.Code
}

func TestErrorsHaveTheMessageAndTheStatus(t *testing.T) {
	ctx := context.Background()
	summary, err := File("trail.go").Summary(ctx)
	equal(t, []any{code(t, err, "not a Go execution trace"), summary}, []any{1, (*Summary)(nil)})
	_, err = File("none.trace").Summary(ctx)
	equal(t, code(t, err, "No such file"), 3)
	_, err = File("-").Summary(ctx)
	equal(t, code(t, err, "No such file"), 3)
	cut := content(t, cut23)[:30000]
	summary, err = From(bytes.NewReader(cut)).Summary(ctx)
	equal(t, code(t, err, "failed to read full batch"), 1)
	if summary == nil || summary.Events == 0 {
		t.Fatal("nothing of a damaged trace")
	}
	_, err = Query[any](ctx, "select 1", From(bytes.NewReader(cut)), From(bytes.NewReader(cut)))
	equal(t, err != nil && strings.Contains(err.Error(), "at most one"), true)
	needDuckDB(t)
	_, err = Query[any](ctx, "select nothing from events", File(shop))
	equal(t, code(t, err, "nothing"), 2)
	rows, err := Query[map[string]int](ctx, "select count(*) as n from events", From(bytes.NewReader(cut)))
	equal(t, code(t, err, "failed to read full batch"), 1)
	equal(t, rows, []map[string]int{{"n": int(summary.Events)}})
}

func TestAPathThatLooksLikeAnOptionIsAPath(t *testing.T) {
	here, err := os.Getwd()
	good(t, err)
	defer func() { good(t, os.Chdir(here)) }()
	trace := content(t, shop)
	good(t, os.Chdir(t.TempDir()))
	for _, name := range []string{"--help", "-"} {
		good(t, os.WriteFile(name, trace, 0o600))
		_, err := File(name).Summary(context.Background())
		good(t, err)
	}
}

// broken fails after some bytes of a trace.
type broken struct {
	io.Reader
	err error
}

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func TestTheErrorOfAReaderIsReturned(t *testing.T) {
	lost := errors.New("connection lost")
	_, err := From(&broken{bytes.NewReader(content(t, shop)[:3000]), lost}).Summary(context.Background())
	equal(t, err, lost)
}

func TestAContextEndsTheCommandEvenIfItsReaderNeverDoes(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = w.Write([]byte("go 1.23 trace")) // taken: the command has been started
		cancel()
	}()
	_, err := From(r).Summary(ctx)
	equal(t, err, context.Canceled)
}

func TestACommandThatIsNotThere(t *testing.T) {
	defer func(command string) { Command = command }(Command)
	Command = filepath.Join(t.TempDir(), "trail")
	_, err := File(shop).Summary(context.Background())
	equal(t, errors.Is(err, os.ErrNotExist), true)
}

// The handler

// recorder writes what a function has it write.
type recorder func(w io.Writer) error

func (r recorder) WriteTo(w io.Writer) (int64, error) { return 0, r(w) }

func writes(data []byte) recorder {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

func get(h http.Handler, method, url, accept string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, url, nil)
	r.Header.Set("Accept", accept)
	h.ServeHTTP(w, r)
	return w
}

func TestHandlerServesJSONAndAPage(t *testing.T) {
	h := &Handler{Recorder: writes(content(t, shop))}
	for _, accept := range []string{"", "*/*", "application/json"} {
		w := get(h, "GET", "/", accept)
		equal(t, []any{w.Code, w.Header().Get("Content-Type")}, []any{200, "application/json"})
		equal(t, plain(t, w.Body.Bytes()), plain(t, command(t, "summary", "--json", shop)))
	}
	equal(t, get(h, "GET", "/?format=json", "text/html").Header().Get("Content-Type"), "application/json")
	for url, accept := range map[string]string{"/?format=html": "", "/": "text/html,*/*"} {
		w := get(h, "GET", url, accept)
		equal(t, []any{w.Code, w.Header().Get("Content-Type")}, []any{200, "text/html; charset=utf-8"})
		if page := w.Body.String(); !strings.HasPrefix(page, "<!") || !strings.Contains(page, "flush_once") {
			t.Fatal(page[:100])
		}
	}
	equal(t, get(h, "POST", "/", "").Code, http.StatusMethodNotAllowed)
	equal(t, get(h, "GET", "/?format=xml", "").Code, http.StatusBadRequest)
}

func TestHandlerTakesOneRequestAtATime(t *testing.T) {
	begun, end := make(chan bool), make(chan bool)
	h := &Handler{Recorder: recorder(func(w io.Writer) error {
		begun <- true
		<-end
		return writes(content(t, shop))(w)
	})}
	first := make(chan int)
	go func() { first <- get(h, "GET", "/", "").Code }()
	<-begun
	equal(t, get(h, "GET", "/", "").Code, http.StatusServiceUnavailable)
	end <- true
	equal(t, <-first, 200)
}

func TestHandlerHasLimitsOfSizeAndTime(t *testing.T) {
	trace := content(t, shop)
	small := get(&Handler{Recorder: writes(trace), MaxBytes: int64(len(trace)) - 1}, "GET", "/", "")
	equal(t, []any{small.Code, small.Body.String()}, []any{500, "snapshot: larger than the limit\n"})
	// The trace is within the limit, the report is not.
	small = get(&Handler{Recorder: writes(trace), MaxBytes: int64(len(trace))}, "GET", "/?format=html", "")
	equal(t, []any{small.Code, small.Body.String()}, []any{500, "report: larger than the limit\n"})
	slow := get(&Handler{Timeout: time.Nanosecond, Recorder: writes(trace)}, "GET", "/", "")
	equal(t, slow.Code, http.StatusGatewayTimeout)
}

func TestHandlerReportsAFailureOfTheRecorderAndOfTheCommand(t *testing.T) {
	w := get(&Handler{Recorder: recorder(func(io.Writer) error { return errors.New("not enabled") })}, "GET", "/", "")
	equal(t, []any{w.Code, w.Body.String()}, []any{500, "snapshot: not enabled\n"})
	w = get(&Handler{Recorder: writes([]byte("no trace"))}, "GET", "/", "")
	equal(t, w.Code, 500)
	equal(t, strings.Contains(w.Body.String(), "not a Go execution trace"), true)
}
