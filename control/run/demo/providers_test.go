package demo

import (
	"encoding/base64"
	"log/slog"
	"math"
	"testing"

	"fairlane/control/provider/simulated"
	"fairlane/policy"
)

func TestProvidersAreThoseOfThePolicy(t *testing.T) {
	t.Parallel()
	p := platform(t, 20)
	secret := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24))
	cfg := p.Providers(1, "key", secret)
	server, err := simulated.NewServer(cfg, t.TempDir(), slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	limits := map[[3]string]int64{}
	for _, profile := range cfg.Profiles {
		if !profile.Lookup {
			t.Errorf("%s cannot be asked for a job by key", profile.Code)
		}
		for _, pool := range profile.Pools {
			limits[[3]string{profile.Code, pool.Account, pool.Model}] = int64(pool.Concurrency)
		}
	}
	d := p.Document()
	leaves := 0
	for _, pool := range d.Pools {
		if pool.Kind != policy.PoolProvider {
			continue
		}
		leaves++
		if got := limits[[3]string{pool.Provider, pool.Account, pool.Model}]; got != pool.CapacityUnits {
			t.Errorf("%s: the provider allows %d, the policy %d", pool.Key, got, pool.CapacityUnits)
		}
	}
	if leaves != len(limits) {
		t.Errorf("%d pools, %d limits", leaves, len(limits))
	}
	for _, m := range cfg.Models {
		policyModel, ok := d.Model(m.Code)
		if !ok || math.Abs(policyModel.P95Seconds*20-m.P95) > 1e-6 || policyModel.CostMicro != m.CostMicro {
			t.Errorf("%s: provider %+v, policy %+v", m.Code, m, policyModel)
		}
	}
}
