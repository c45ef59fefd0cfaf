package demo

import (
	"fairlane/control/provider"
	"fairlane/control/provider/simulated"
)

// traits are what sets a provider apart from the usual: found by our key, callbacks without a signature, a
// running job can be cancelled. Each can be asked for a job by key: what could not would leave a lost
// answer to a person, and a demo has none at hand.
var traits = map[string]simulated.Profile{
	"veo":       {Signed: true, Cancel: provider.CancelNone},
	"kling":     {Dedupe: true, Cancel: provider.CancelNone},
	"fal":       {Signed: true},
	"ark":       {Cancel: provider.CancelQueuedOnly},
	"byteplus":  {Cancel: provider.CancelQueuedOnly},
	"dashscope": {Cancel: provider.CancelQueuedOnly},
}

// profile is what a provider can do; the pools of the policy say so too.
func profile(code string) simulated.Profile {
	p := traits[code]
	p.Code, p.Lookup = code, true
	return p
}

// Providers is what the simulated providers are told: the catalogue's models with undivided times, the
// speed, and each account's limit per model as in the first policy version.
func (p *Platform) Providers(seed uint64, apiKey, webhookSecret string) simulated.Config {
	cfg := simulated.Config{
		Seed: seed, Speed: p.Speed, APIKey: apiKey, WebhookSecret: webhookSecret, Rates: simulated.UsualRates(),
	}
	for _, m := range catalogue(p.Speed) {
		r := p.Renders[m.Code]
		cfg.Models = append(cfg.Models, simulated.Model{
			Code: m.Code, P50: r.Median.Seconds() * p.Speed, P95: r.P95.Seconds() * p.Speed, CostMicro: m.CostMicro,
		})
	}
	place := map[string]int{}
	for _, a := range accounts {
		i, ok := place[a.provider]
		if !ok {
			i = len(cfg.Profiles)
			place[a.provider] = i
			cfg.Profiles = append(cfg.Profiles, profile(a.provider))
		}
		for _, s := range a.models {
			cfg.Profiles[i].Pools = append(cfg.Profiles[i].Pools, simulated.Pool{Account: a.name, Model: s.model, Concurrency: int(s.units)})
		}
	}
	return cfg
}
