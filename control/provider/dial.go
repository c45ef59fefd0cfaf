package provider

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrAddress is wrapped by the error of a dial to an address that is not public and not allowed.
var ErrAddress = errors.New("address is not public and not on the allow-list")

// notPublic are ranges beside those that netip knows: shared, benchmark, documentation and reserved
// ones, and IPv6 ranges that carry an IPv4 address inside.
var notPublic = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")

// DialControl is a net.Dialer.ControlContext that looks at the resolved address of every dial, so
// that a name which turns to another address after it was saved gains nothing.
func DialControl(allow []netip.Prefix) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return CheckAddress(address, allow)
	}
}

// CheckAddress refuses an "ip:port" that is neither public nor in allow; the error wraps ErrAddress.
func CheckAddress(address string, allow []netip.Prefix) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q", ErrAddress, address)
	}
	ip := ap.Addr().WithZone("").Unmap()
	for _, p := range allow {
		if p.Contains(ip) {
			return nil
		}
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return fmt.Errorf("%w: %s", ErrAddress, ip)
	}
	for _, p := range notPublic {
		if p.Contains(ip) {
			return fmt.Errorf("%w: %s", ErrAddress, ip)
		}
	}
	return nil
}

// Loopback is the allow-list of a provider that runs on this machine, as the demo's does.
func Loopback() []netip.Prefix { return prefixes("127.0.0.0/8", "::1/128") }

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}
