package estimate

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Fairness takes the mean and the tenant's factor; times stay what they are.
func TestABookEstimatesByHistoryAndFactor(t *testing.T) {
	t.Parallel()
	m := clip()
	ask := Ask{Resolution: "720p", Seconds: 5, Provider: "a"}
	var none *Book
	plain, err := none.Of(&m, seedBases, ask)
	if err != nil {
		t.Fatal(err)
	}
	if prior, err := Of(&m, seedBases, "720p", 5); err != nil || plain != prior {
		t.Errorf("without history %+v, the prior is %+v: %v", plain, prior, err)
	}
	book := NewBook(5, map[Key]History{
		{"clip", "720p", 5, ""}:  {Tasks: 980, MeanSeconds: 120, P95Seconds: 400, Costs: 980, CostMicro: 300_000},
		{"clip", "720p", 10, ""}: {Tasks: 980, MeanSeconds: 1, P95Seconds: 1, Costs: 980, CostMicro: 1},
	})
	learnt, err := book.Of(&m, seedBases, ask)
	if err != nil {
		t.Fatal(err)
	}
	// (20 × 60 + 980 × 120) / 1,000 = 118.8 s; P95 395 s; cost 296,000: 3.96 units by time.
	if learnt.MeanSeconds != 118.8 || learnt.P95Seconds != 395 || learnt.CostMicro != 296_000 || learnt.BaseMilli != 3_960 ||
		learnt.FairnessMilli != 3_960 || learnt.Version != 5 || learnt.PriceMicro != plain.PriceMicro {
		t.Errorf("%+v", learnt)
	}
	ask.Factor = Factor{3, 100}
	heavy, err := book.Of(&m, seedBases, ask)
	if err != nil {
		t.Fatal(err)
	}
	want := learnt
	want.FairnessMilli, want.P95Seconds = 11_880, 1185
	if heavy != want {
		t.Errorf("with a factor %+v, want %+v", heavy, want)
	}
	ask.Factor = Factor{0.5, 100}
	if light, err := book.Of(&m, seedBases, ask); err != nil || light.P95Seconds != learnt.P95Seconds {
		t.Errorf("a promise is not cut short for a light tenant: %+v %v", light, err)
	}
	ask.Factor = Factor{3, 100}
	m.GPUSeconds = 30
	if gpu, err := book.Of(&m, seedBases, ask); err != nil || gpu.GPUSeconds != 59.4 {
		t.Errorf("GPU seconds follow: %+v %v", gpu, err)
	}
	// What was learnt never refuses a task: it costs the most that fairness carries.
	m.SlotUnits = 4_000
	if wide, err := book.Of(&m, seedBases, ask); err != nil || wide.BaseMilli != maxMilli || wide.FairnessMilli != maxMilli {
		t.Errorf("%+v %v", wide, err)
	}
}

type shelf struct {
	head  atomic.Int64
	away  atomic.Bool
	reads atomic.Int64
}

func (s *shelf) HeadVersion(context.Context) (int64, error) {
	if s.away.Load() {
		return 0, errors.New("away")
	}
	return s.head.Load(), nil
}

func (s *shelf) Book(_ context.Context, version int64) (*Book, error) {
	s.reads.Add(1)
	return NewBook(version, nil), nil
}

func TestActiveFollowsTheNewestVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		s.head.Store(4)
		a := NewActive(s, ActiveConfig{})
		if a.Book().Version() != PriorVersion {
			t.Errorf("version %d before the first was read", a.Book().Version())
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = a.Run(ctx) }()
		at := func(want int64) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if got := a.Book().Version(); got != want {
				t.Errorf("version %d is in force, want %d", got, want)
			}
		}
		at(4)
		s.away.Store(true)
		s.head.Store(5)
		at(4) // the last one stays while the store is away
		s.away.Store(false)
		at(5)
		at(5)
		s.head.Store(3) // a replica of the store that is behind
		at(5)
		if n := s.reads.Load(); n != 2 {
			t.Errorf("%d versions were read, there are 2", n)
		}
		stop()
		<-done
	})
}

func TestCalibrationTellsHowEstimatesDid(t *testing.T) {
	t.Parallel()
	var c Calibration
	if c.Quality() != (Quality{}) {
		t.Errorf("before the first: %+v", c.Quality())
	}
	for i := range 100 {
		o := Outcome{Seconds: 30, ExpectedSeconds: 60, Held: 40, P95Seconds: 150, Used: 2_000, Charged: 2_000}
		if i%10 == 0 {
			o.Seconds, o.Held, o.Used = 300, 310, 10_000
		}
		c.Observe(o)
		c.Observe(Outcome{Seconds: 1, ExpectedSeconds: 0, P95Seconds: 1, Charged: 1}) // no estimate to compare with
	}
	state, err := c.Save()
	if err != nil {
		t.Fatal(err)
	}
	var again Calibration
	if err := again.Restore(state); err != nil {
		t.Fatal(err)
	}
	q := again.Quality()
	if q != c.Quality() || q.Tasks != 100 || q.AboveP95 != 0.1 {
		t.Errorf("%+v, kept as %+v", c.Quality(), q)
	}
	near := func(got, want float64) bool { return got > want*0.98 && got < want*1.02 }
	if !near(q.SecondsP50, 0.5) || !near(q.SecondsP95, 5) || !near(q.UnitsP50, 1) || !near(q.UnitsP95, 5) {
		t.Errorf("%+v", q)
	}
}
