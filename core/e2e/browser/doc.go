// Package browser drives the pages of a real host in Chromium, with scripts switched off
// and by keyboard. Its tests run with the build tag browser and leave screenshots in
// var/screens.
package browser
