package live

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/policy/access"
)

const kernelBuffer = 64 << 10 // bytes

// Handle upgrades the request of a signed-in operator; the route's own guard has let it through.
func (h *Hub) Handle(c *gin.Context) {
	who, ok := access.SubjectOf(c.Request.Context())
	if !ok {
		c.AbortWithStatus(http.StatusUnauthorized)
		return
	}
	// Told before the upgrade and before any other answer: a foreign page learns nothing else.
	if !h.originAllowed(c.Request) {
		c.AbortWithStatus(http.StatusForbidden)
		return
	}
	// After a restart everybody comes back at once: some are sent away for a moment.
	if !h.limit.AllowN(h.cfg.Now(), 1) || !h.reserve(who) {
		c.Header("Retry-After", "2")
		c.AbortWithStatus(http.StatusServiceUnavailable)
		return
	}
	conn, err := h.upgrader.Upgrade(c.Writer, c.Request, nil)
	if err != nil { // the upgrader has answered
		h.giveUp(who)
		c.Abort()
		return
	}
	if tcp, ok := conn.NetConn().(interface{ SetWriteBuffer(int) error }); ok {
		_ = tcp.SetWriteBuffer(kernelBuffer) // else the kernel keeps megabytes for a client that reads nothing
	}
	s := newSocket(h, conn, who)
	h.mu.Lock()
	h.sockets[s] = struct{}{}
	closed := h.closed
	h.mu.Unlock()
	h.cfg.Meter.SocketOpened()
	if closed {
		s.close(CloseRestart, "restart")
	}
	// The handler returns, so that the request's memory goes; the hub owns both goroutines.
	go func() { defer h.running.Done(); s.write() }()
	go func() { defer h.running.Done(); defer h.leave(s); s.read() }()
}

// reserve takes a place for the operator's socket, and for its two goroutines.
func (h *Hub) reserve(who access.Subject) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.places >= h.cfg.MaxSockets || h.count[who.Operator] >= h.cfg.PerOperator {
		return false
	}
	h.places++
	h.count[who.Operator]++
	h.running.Add(2)
	return true
}

// free gives a place back; the caller holds the lock.
func (h *Hub) free(operator uuid.UUID) {
	h.places--
	if h.count[operator]--; h.count[operator] <= 0 {
		delete(h.count, operator)
	}
}

func (h *Hub) giveUp(who access.Subject) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free(who.Operator)
	h.running.Add(-2)
}

// originAllowed wants an Origin that is this host itself, as the browser calls it, or one of the list.
// Cookies of this host go with requests of any page, so that the cookie alone proves nothing.
func (h *Hub) originAllowed(r *http.Request) bool {
	values := r.Header.Values("Origin")
	if len(values) != 1 {
		return false
	}
	origin, err := url.Parse(values[0])
	if err != nil || origin.Host == "" || (origin.Scheme != "http" && origin.Scheme != "https") || values[0] != origin.Scheme+"://"+origin.Host {
		return false
	}
	return strings.EqualFold(origin.Host, r.Host) || slices.Contains(h.cfg.Origins, values[0])
}
