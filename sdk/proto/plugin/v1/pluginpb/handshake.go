package pluginpb

// What host and plugin agree on before the first call. The host sets these in the
// environment of the process it starts; a plugin that misses them was started by hand.
const (
	// ProtocolVersion is the version of this protocol.
	ProtocolVersion = 1
	// CookieKey and CookieValue mark a process that a host started. They are no secret.
	CookieKey   = "SALLYPORT_PLUGIN"
	CookieValue = "2f1f1c1d9b0e4a7f8d53a6c0e7b94d1a"
	// PluginName is the name under which go-plugin serves the Plugin service.
	PluginName = "plugin"
	// HostDescriptor is the inherited descriptor on which core serves Host.
	HostDescriptor = 3
)

// Limits of messages, in bytes.
const (
	// MaxPluginMessage bounds what a plugin may send in one message, in either service.
	MaxPluginMessage = 4 << 20
	// MaxHostMessage bounds what core sends in one message: a fetched body of 8 MiB and
	// its headers.
	MaxHostMessage = 9 << 20
)
