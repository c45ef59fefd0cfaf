// Package embedded runs a private PostgreSQL and a private Redis as child processes, from programs that
// are on the machine, for people who bring neither. It knows nothing of what is stored in them.
//
// Both listen on Unix sockets in a short folder that only their account may enter, never on a port, and
// both die with the process that started them, kill -9 included. Redis keeps nothing on disk. As root the
// children run under another account (initdb refuses root); where that account cannot reach the data
// directory the cluster lies under /var/lib/fairlane and Notes say so. Linux only.
//
// control/run, store/storetest/services and tests call it.
package embedded
