package simulate

import "github.com/google/uuid"

// ends is a heap of running tasks by their end.
type ends []*task

func (h ends) Len() int { return len(h) }
func (h ends) Less(i, j int) bool {
	if h[i].ends != h[j].ends {
		return h[i].ends < h[j].ends
	}
	return h[i].began < h[j].began || h[i].began == h[j].began && lessID(h[i].attempt, h[j].attempt)
}
func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *ends) Push(x any)   { *h = append(*h, x.(*task)) }
func (h *ends) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

func lessID(a, b uuid.UUID) bool { return string(a[:]) < string(b[:]) }

// patience is a heap of waiting tasks by the end of their patience.
type patience []patient

type patient struct {
	until int64
	id    uuid.UUID
}

func (h patience) Len() int { return len(h) }
func (h patience) Less(i, j int) bool {
	return h[i].until < h[j].until || h[i].until == h[j].until && lessID(h[i].id, h[j].id)
}
func (h patience) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *patience) Push(x any)   { *h = append(*h, x.(patient)) }
func (h *patience) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}
