// Package live is the hub of the live views: it upgrades a signed-in request to a WebSocket, checks the
// right to each topic when it is asked for, whenever rights move and every two seconds, and passes the
// monitor's snapshots and patches on. It reads no facts itself and changes nothing.
//
// To the client, JSON texts; times are Unix milliseconds, now is the server's clock:
//
//	{"topic","epoch","seq","as_of","now","snapshot":{"order":[key…],"rows":{key:row}}}
//	{"topic","epoch","seq","as_of","now","patch":{"set":{key:row},"gone":[key…],"order":[key…]}}
//	{"topic","epoch","seq","as_of","now","resumed":true}     patches from seq+1 on follow
//	{"beat":{"epoch","now","topics":{topic:{"seq","as_of"}}}} every two seconds
//
// From the client: {"hello":{"topics":[{"topic","epoch","seq"}]}} subscribes, and resumes where epoch and
// seq are still known; {"resync":[topic…]} asks for fresh snapshots after a gap.
//
// Topics of single objects, task:<id> and tenant:<id>, exist while somebody follows them. They are for those
// whose reach holds the object, which is looked up again every ten seconds; their age is in the beats of
// their followers alone.
//
// Close codes: 4001 the session ended, 4003 a right is missing, 4008 too slow (come back, jittered), 1012
// restart (come back, jittered), 1013 too many objects are looked at (likewise), 1008 a message that no client of ours sends.
//
// A socket has one writer, a bounded queue and a write deadline. A queue that overflows loses its
// topic's patches and gets one fresh snapshot instead, so that a slow client costs no memory and delays
// nobody. Frames are prepared once for all sockets.
package live
