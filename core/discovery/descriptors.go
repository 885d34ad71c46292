package discovery

import (
	"net/url"

	"github.com/sallyport-dev/sallyport/core"
)

// description is the platform in at most 100 characters, the limit of registries.
const description = "Operators turn a goal into evidence, drafts and actions; a person approves each before it leaves."

// versions of the protocol that /mcp speaks, newest first.
var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}

const reverseName = "dev.sallyport/sallyport"

type descriptor struct {
	path, kind, purpose string
	content             any
}

type object = map[string]any

func descriptors(deps Deps, f *files) []descriptor {
	base := deps.BaseURL
	return []descriptor{
		{PathMCP, typeJSON, "MCP descriptor", mcpDescriptor(deps, f)},
		{PathResource, typeJSON, "Protected-resource metadata of the REST interface", protectedResource(base, base, core.Scopes())},
		{PathResourceOfMCP, typeJSON, "Protected-resource metadata of the MCP endpoint", protectedResource(base, base+"/mcp", scopes())},
		{PathCatalog, typeCatalog, "Catalog entry of the MCP server", aiCatalog(base)},
		{PathServerCard, typeCard, "Card of the MCP server", serverCard(base, deps.Version)},
	}
}

func mcpDescriptor(deps Deps, f *files) object {
	base := deps.BaseURL
	return object{
		"name":             "sallyport",
		"title":            "Sallyport",
		"description":      description,
		"version":          deps.Version,
		"protocol":         "mcp/2025-03-26",
		"protocolVersions": versions,
		"transport":        "http",
		"endpoint":         base + "/mcp",
		"method":           "POST",
		"messages":         "JSON-RPC 2.0",
		"publicMethods": []string{"initialize", "notifications/initialized", "tools/list", "resources/list",
			"resources/templates/list", "prompts/list", "ping", "server/discover"},
		"authenticatedMethods": []string{"tools/call", "resources/read", "prompts/get"},
		"authentication": object{
			"headers": []object{
				{"name": "Authorization", "value": "Bearer API_KEY"},
				{"name": "X-Api-Key", "value": "API_KEY"},
			},
			"resourceMetadata": base + PathResourceOfMCP,
			"getKey":           "The owner makes one: sallyport key create --name NAME --kind agent",
		},
		"approval": object{
			"rule":      "No publish, send, spend or other external effect happens before a person approves it at reviewUrl.",
			"agentKeys": "cannot approve",
		},
		"tools": object{"count": len(f.tools), "names": f.tools, "digest": f.digest},
		"links": object{
			"openapi": base + PathOpenAPI, "llms": base + PathLLMs, "agents": base + PathAgents, "hookGuide": base + PathHookGuide,
			"collector": base + PathCollector, "installer": base + PathInstaller, "status": base + PathStatus, "serverCard": base + PathServerCard,
		},
	}
}

// protectedResource is the document of RFC 9728. It names no authorization server, since
// keys and tokens are handed out by the owner.
func protectedResource(base, resource string, scopes []string) object {
	return object{
		"resource":                 resource,
		"resource_name":            "Sallyport",
		"resource_documentation":   base + PathAgents,
		"bearer_methods_supported": []string{"header"},
		"scopes_supported":         scopes,
	}
}

func aiCatalog(base string) object {
	host := "localhost"
	if u, err := url.Parse(base); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	return object{
		"specVersion": "1.0",
		"host":        object{"displayName": "Sallyport"},
		"entries": []object{{
			"identifier":  "urn:air:" + host + ":mcp:sallyport",
			"displayName": "Sallyport",
			"type":        typeCard,
			"url":         base + PathServerCard,
			"description": description,
		}},
	}
}

func serverCard(base, version string) object {
	return object{
		"$schema":     "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
		"name":        reverseName,
		"title":       "Sallyport",
		"description": description,
		"version":     version,
		"websiteUrl":  base,
		"remotes": []object{{
			"type":                      "streamable-http",
			"url":                       base + "/mcp",
			"supportedProtocolVersions": versions,
			"headers":                   []object{keyHeader()},
		}},
	}
}

// keyHeader asks for a key without making it a must: lists are public.
func keyHeader() object {
	return object{
		"name": "Authorization", "value": "Bearer {api_key}", "isRequired": false, "isSecret": true,
		"description": "Needed for tools/call. X-Api-Key works as well.",
		"variables":   object{"api_key": object{"description": "Key of kind agent, made by the owner", "isRequired": true, "isSecret": true}},
	}
}

// ServerJSON is the description for server registries. Every installation has an address
// of its own, so that the host is a variable. The file server.json of the repository
// holds it.
func ServerJSON(version string) any {
	return object{
		"$schema":     "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":        reverseName,
		"title":       "Sallyport",
		"description": description,
		"version":     version,
		"remotes": []object{{
			"type":      "streamable-http",
			"url":       "https://{host}/mcp",
			"variables": object{"host": object{"description": "Host of the installation", "isRequired": true}},
			"headers":   []object{keyHeader()},
		}},
	}
}
