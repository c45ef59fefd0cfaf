// Package static serves the embedded assets: styles in layers, small modules, vendored libraries with
// their licence. All of them lie under one prefix that is a hash of their content, so that clients may
// keep them for ever and modules may import each other by relative names.
package static
