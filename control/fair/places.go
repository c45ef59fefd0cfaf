package fair

import "math/bits"

// Places is a set of places of a ring that finds the next one after a place in a few steps: a bitmap
// with bitmaps above it that say which words are not empty. The zero value is empty.
type Places struct {
	level [][]uint64 // level[0] has one bit a place
	n     int
}

// Len returns the number of places.
func (s *Places) Len() int { return s.n }

// Add puts a place in; it must not be there.
func (s *Places) Add(place int64) {
	s.n++
	i := uint64(place)
	if len(s.level) == 0 || i/64 >= uint64(len(s.level[0])) {
		s.grow(i)
	}
	for _, words := range s.level {
		was := words[i/64]
		words[i/64] |= 1 << (i % 64)
		if was != 0 {
			return
		}
		i /= 64
	}
}

// grow makes room for place i at every level, and adds levels until the top one has a single word.
func (s *Places) grow(i uint64) {
	for l := 0; ; l++ {
		if l == len(s.level) {
			s.level = append(s.level, nil)
			if l > 0 {
				s.level[l] = make([]uint64, len(s.level[l-1])/64+1)
				for j, w := range s.level[l-1] {
					if w != 0 {
						s.level[l][j/64] |= 1 << (j % 64)
					}
				}
			}
		}
		for uint64(len(s.level[l])) <= i/64 {
			s.level[l] = append(s.level[l], 0)
		}
		if l == len(s.level)-1 && len(s.level[l]) == 1 {
			return
		}
		i /= 64
	}
}

// Del takes a place out; it must be there.
func (s *Places) Del(place int64) {
	s.n--
	for l, i := 0, uint64(place); l < len(s.level); l, i = l+1, i/64 {
		s.level[l][i/64] &^= 1 << (i % 64)
		if s.level[l][i/64] != 0 {
			return
		}
	}
}

// After returns the smallest place above the given one, or -1.
func (s *Places) After(place int64) int64 {
	i := uint64(place + 1)
	for l := 0; l < len(s.level); l++ {
		if w := i / 64; w < uint64(len(s.level[l])) {
			if rest := s.level[l][w] >> (i % 64); rest != 0 {
				return s.down(l, i+uint64(bits.TrailingZeros64(rest)))
			}
		}
		i = i/64 + 1
	}
	return -1
}

// down finds the first place below bit i of level l.
func (s *Places) down(l int, i uint64) int64 {
	for ; l > 0; l-- {
		i = i*64 + uint64(bits.TrailingZeros64(s.level[l-1][i]))
	}
	return int64(i)
}

// Next returns the first place after the given one, going round; -1 when the set is empty.
func (s *Places) Next(place int64) int64 {
	if n := s.After(place); n >= 0 {
		return n
	}
	return s.After(-1)
}
