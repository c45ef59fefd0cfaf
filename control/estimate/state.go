package estimate

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// The state of a cell as it is kept between runs of the learner: JSON, with the buckets that hold
// something by their index.
type cellState struct {
	Work momentState `json:"work"`
	Cost momentState `json:"cost"`
	Held sketchState `json:"held"`
}

type momentState struct {
	Weight float64 `json:"weight"`
	Sum    float64 `json:"sum"`
}

type sketchState map[string]float64

// Save returns the state of a key's cell; nil when nothing was observed of it.
func (m *Model) Save(k Key) ([]byte, error) {
	c, ok := m.cells[k]
	if !ok {
		return nil, nil
	}
	return json.Marshal(cellState{c.work.save(), c.cost.save(), c.held.save()})
}

// Restore puts back what Save returned, and what was published of the key; a state that is not one of
// ours is an error and changes nothing.
func (m *Model) Restore(k Key, state []byte, told History) error {
	var s cellState
	if err := json.Unmarshal(state, &s); err != nil {
		return fmt.Errorf("what was learnt of %+v: %w", k, err)
	}
	c := &cell{}
	if !c.work.restore(s.Work) || !c.cost.restore(s.Cost) || !c.held.restore(s.Held) {
		return fmt.Errorf("what was learnt of %+v is no weight and sum of observations", k)
	}
	m.cells[k], m.told[k] = c, told
	return nil
}

func (m *moment) save() momentState { return momentState{m.weight, m.sum} }

func (m *moment) restore(s momentState) bool {
	*m = moment{s.Weight, s.Sum}
	return within(s.Weight, Memory) && within(s.Sum, math.MaxFloat64)
}

func (s *sketch) save() sketchState {
	out := sketchState{}
	for i, w := range s.at {
		if w > 0 {
			out[strconv.Itoa(i+leastIndex)] = w
		}
	}
	return out
}

func (s *sketch) restore(state sketchState) bool {
	*s = sketch{}
	for text, w := range state {
		i, err := strconv.Atoi(text)
		if err != nil || i < leastIndex || i-leastIndex >= buckets || !(w > 0) || w > Memory {
			return false
		}
		if s.at == nil {
			s.at = make([]float64, buckets)
		}
		s.at[i-leastIndex] = w
	}
	for _, w := range s.at { // in the order of the buckets: a sum of floats depends on it
		s.weight += w
	}
	return s.weight <= Memory
}
