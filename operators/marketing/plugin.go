// Package marketing is the operator that answers marketing goals: it finds out what is asked, gathers evidence, lets
// skills draft, and stages what a person may approve. It publishes, sends and spends nothing.
package marketing

import (
	"context"

	"github.com/sallyport-dev/sallyport/operators/marketing/intent"
	"github.com/sallyport-dev/sallyport/operators/marketing/loop"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
)

const version = "1.0.0"

// Tools of other plugins that this operator calls.
const (
	toolBrand   = "mkt_extract_brand_dna"
	toolSocial  = "mkt_generate_social_posts"
	toolLanding = "mkt_generate_landing_copy"
	toolEmail   = "mkt_generate_email_sequence"
	toolAds     = "mkt_generate_ad_variants"

	toolGetRun      = "mkt_get_run"
	toolListRuns    = "mkt_list_runs"
	toolListActions = "mkt_list_actions"

	toolContinue  = "mkt_continue_launch_loop"
	toolHealth    = "mkt_launch_health"
	toolDiagnose  = "mkt_diagnose_marketing"
	toolLaunch    = "mkt_launch_product"
	toolAfter     = "platform_get_users_after_build"
	toolByHand    = "mkt_post_by_hand"
	toolMail      = "smtp_send"
	toolWebhook   = "webhook_post"
	toolOperators = "platform_list_operators"
)

// Plugin is the operator.
func Plugin() sdk.Plugin {
	method, limit := schemas.ManifestNeedsEndpointsElemMethodGET, 1_500_000
	run := func(name string, handler func(context.Context, *sdk.Call) (any, error)) sdk.Tool {
		return sdk.Tool{Document: schemas.MustTool(name), Run: handler}
	}
	return sdk.Plugin{
		Manifest: schemas.Manifest{
			Name: "marketing", Kind: schemas.ManifestKindOperator, Version: version, Title: "Marketing operator", Protocol: 1,
			Description: "Turns marketing goals and finished work into evidence, drafts and actions that wait for a person.",
			Operator:    &schemas.OperatorInfo{PrimaryTool: toolDiagnose, Title: "Marketing", Intents: intent.Names()},
			Needs: schemas.Needs{
				Endpoints: []schemas.Endpoint{{ID: "page", Class: schemas.ClassRead, Host: schemas.HostWeb, Method: &method, MaxResponseBytes: &limit}},
				Memory:    []schemas.ManifestNeedsMemoryElem{schemas.ManifestNeedsMemoryElemRead},
				Tools:     []string{toolBrand, toolSocial, toolLanding, toolEmail, toolAds, toolGetRun, toolListRuns, toolListActions},
				Propose:   []string{toolMail, toolWebhook, toolByHand},
			},
		},
		Tools: []sdk.Tool{
			run(toolDiagnose, diagnose),
			run(toolLaunch, launch),
			run(toolAfter, launch),
			run(toolContinue, loop.Continue),
			run(toolHealth, loop.Health),
			{Document: schemas.MustTool(toolByHand), Compile: byHand},
		},
	}
}
