// Package page holds what the live pages share: their files, access control, and the stream of
// figures.
//
// A Live samples figures once a second into a history of fixed size and sends them to viewers as
// server-sent events. One goroutine samples for any number of viewers; a viewer that is too slow
// misses samples, and nothing waits for it.
//
// The pages are files of the server. They load nothing else, which their policy enforces, and they
// show content of a dataset as text.
//
//	I1  nothing here grows with the time that a page is open, or with the number of samples;
//	I2  without a viewer no state is computed, only samples.
package page
