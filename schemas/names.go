package schemas

import "encoding/json"

// Short names for generated types.
type (
	// Effect says what a tool does to the outside world.
	Effect = ToolDocumentEffect
	// EndpointClass sorts endpoints into reads, writes and sign-in.
	EndpointClass = ManifestNeedsEndpointsElemClass
	// Signer names one of core's signers.
	Signer = ManifestNeedsEndpointsElemSignersElem
	// CredentialMode says what kind of credential core keeps.
	CredentialMode = ManifestNeedsCredentialMode
)

// Values under their short names.
const (
	EffectDraft = ToolDocumentEffectDraft
	EffectRead  = ToolDocumentEffectRead
	EffectWrite = ToolDocumentEffectWrite

	ClassRead  = ManifestNeedsEndpointsElemClassRead
	ClassWrite = ManifestNeedsEndpointsElemClassWrite
	ClassAuth  = ManifestNeedsEndpointsElemClassAuth
)

// HostWeb is the endpoint host that stands for open-web reads of addresses the caller gave.
const (
	HostWeb        = "$web"
	HostConnection = "$connection"
)

// MustJSON is the document as JSON. A Document always comes from JSON, so that it cannot fail.
func (d Document) MustJSON() []byte {
	b, err := json.Marshal(map[string]any(d))
	if err != nil {
		panic(err)
	}
	return b
}
