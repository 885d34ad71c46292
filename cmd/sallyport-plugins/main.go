// Command sallyport-plugins holds all plugins of this repository in one binary: a host
// starts it once per plugin, with the plugin's name as argument. Processes of one binary
// share their memory pages, and one link replaces twenty.
package main

import (
	"github.com/sallyport-dev/sallyport/operators/marketing"
	"github.com/sallyport-dev/sallyport/plugins/connector/buffer"
	googleads "github.com/sallyport-dev/sallyport/plugins/connector/google_ads"
	analytics "github.com/sallyport-dev/sallyport/plugins/connector/google_analytics"
	searchconsole "github.com/sallyport-dev/sallyport/plugins/connector/google_search_console"
	metaads "github.com/sallyport-dev/sallyport/plugins/connector/meta_ads"
	"github.com/sallyport-dev/sallyport/plugins/connector/smtp"
	"github.com/sallyport-dev/sallyport/plugins/connector/webhook"
	"github.com/sallyport-dev/sallyport/plugins/skill/advariants"
	"github.com/sallyport-dev/sallyport/plugins/skill/branddna"
	"github.com/sallyport-dev/sallyport/plugins/skill/emailsequence"
	"github.com/sallyport-dev/sallyport/plugins/skill/landingcopy"
	"github.com/sallyport-dev/sallyport/plugins/skill/socialposts"
	"github.com/sallyport-dev/sallyport/sdk"
)

func main() { sdk.Serve(all()...) }

// all lists the plugins of this repository.
func all() []sdk.Plugin {
	return []sdk.Plugin{
		marketing.Plugin(),
		advariants.Plugin(),
		branddna.Plugin(),
		emailsequence.Plugin(),
		landingcopy.Plugin(),
		socialposts.Plugin(),
		buffer.Plugin(),
		googleads.Plugin(),
		analytics.Plugin(),
		searchconsole.Plugin(),
		metaads.Plugin(),
		smtp.Plugin(),
		webhook.Plugin(),
	}
}
