package simulate

import (
	"encoding/json"
	"math"
	"strconv"
)

// Number is a figure that may be unknown: NaN in memory, null in JSON.
type Number float64

var none = Number(math.NaN())

// Known tells whether there is a figure.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) }

// MarshalJSON writes null for what is not known, and no more digits than mean anything.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 10, 64), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(text []byte) error {
	var f *float64
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	if *n = none; f != nil {
		*n = Number(*f)
	}
	return nil
}
