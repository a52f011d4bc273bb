//go:build go1.25

package trail

import (
	"context"
	"encoding/json"
	"runtime/trace"
	"testing"
)

// A snapshot of the flight recorder itself.
func TestHandlerServesTheFlightRecorder(t *testing.T) {
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{})
	good(t, recorder.Start())
	defer recorder.Stop()
	for i := 0; i < 3; i++ {
		trace.WithRegion(context.Background(), "serve one", func() {})
	}
	w := get(&Handler{Recorder: recorder}, "GET", "/", "")
	equal(t, w.Code, 200)
	var summary Summary
	good(t, json.Unmarshal(w.Body.Bytes(), &summary))
	for _, region := range summary.Regions {
		if region.Name == "serve one" {
			equal(t, region.Count, uint64(3))
			return
		}
	}
	t.Fatalf("no region: %+v", summary.Regions)
}
