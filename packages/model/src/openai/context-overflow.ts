interface Refusal {
  readonly status: number | undefined;
  readonly code: string | null | undefined;
  readonly message: string;
}

/** OpenAI, Azure, Groq, DeepSeek: `context_length_exceeded`. llama.cpp's server: `exceed_context_size_error`. */
const codes = new Set(['context_length_exceeded', 'exceed_context_size_error', 'request_too_large', 'model_context_window_exceeded']);

/**
 * The one place that reads messages: most providers state it in words only, with status 400. As seen in their answers:
 * - OpenAI, OpenRouter, vLLM, DeepSeek: "This model's (endpoint's) maximum context length is 8192 tokens. However, …"
 * - OpenAI, newer models: "Your input exceeds the context window of this model", "Input tokens exceed the configured
 *   limit of …"
 * - Anthropic: "prompt is too long: 213462 tokens > 200000 maximum"
 * - Gemini: "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)"
 * - xAI: "This model's maximum prompt length is 131072 but the request contains 537812 tokens"
 * - Groq: "Please reduce the length of the messages or completion"
 * - Mistral: "Prompt contains 40000 tokens … too large for model with 32768 maximum context length"
 * - Bedrock: "Input is too long for requested model"
 * - vLLM: "The decoder prompt (length 9000) is longer than the maximum model length of 8192"
 * - llama.cpp: "the request exceeds the available context size"; LM Studio: "greater than the context length"
 * - Moonshot: "exceeded model token limit: 131072"
 */
const messages = [
  /maximum (?:context|prompt|model) length/iu,
  /exceeds? the (?:context window|available context size|maximum number of tokens|configured limit)/iu,
  /(?:prompt|input) is too long/iu,
  /reduce the length of the (?:messages|prompt|input)/iu,
  /greater than the context length/iu,
  /exceeded model token limit/iu,
];

/** Did the provider refuse because the prompt does not fit into the model's context? */
export function isContextOverflow({ status, code, message }: Refusal): boolean {
  if (typeof code === 'string' && codes.has(code)) return true;
  // Too large a body: with this client it is the conversation that is too large.
  if (status === 413) return true;
  if (status !== undefined && status !== 400 && status !== 422) return false;
  return messages.some((pattern) => pattern.test(message));
}
