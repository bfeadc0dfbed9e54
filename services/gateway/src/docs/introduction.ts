/** What the documentation begins with: a first call, streams, errors, and what holds for every request. */
export const introduction = `Every request carries a key of the tenant, as \`X-API-Key\` or as \`Authorization: Bearer\`. Keys are made in the console (Settings) or by an operator, and begin with \`ck_live_\`.

## A first call

\`\`\`sh
curl -N "$URL/api/admin" \\
  -H "X-API-Key: $KEY" -H 'Content-Type: application/json' \\
  -d '{"message":"What can you do?"}'
\`\`\`

The reply is a stream of events. The first one, \`session\`, has the \`contact_id\`: send it along with the next message to go on with this conversation. With \`Accept: application/json\` the whole reply comes as one JSON object instead.

## Streaming

Server-Sent Events, each with \`event:\`, \`data:\` (one line of JSON) and \`id:\`. \`text_delta\` has the reply piece by piece; exactly one \`done\` or \`error\` comes last. A client that lost its connection asks \`GET /api/turns/{id}/events\` with \`Last-Event-ID\`, and misses nothing; the turn goes on meanwhile. Lines that begin with a colon are comments, which keep the connection alive.

## Errors

\`application/problem+json\` (RFC 9457) with a \`code\` for programs, a \`detail\` for people and, where fields are wrong, \`errors\`. Below /v1 errors have OpenAI’s shape. Every answer carries \`X-Request-Id\`: name it when you ask for help. \`429\` and \`503\` carry \`Retry-After\`.

## Scopes

A key has one or more of \`admin\` (everything), \`cs\` (messages to agents for strangers) and \`read\` (nothing is changed). A key that may not do what it asks gets \`403\` with the code \`scope_required\`. Pages of other sites use the widget’s publishable key, which begins with \`ck_pub_\`, and operators a token of their own.

## Files

\`POST /api/uploads\` takes files, and answers with references for the \`attachments\` of a message.

## Sending twice

A request with an \`Idempotency-Key\` may be sent again after a lost connection: the turn runs once, and both get its reply.

## Pages, limits, versions

Lists come in pages; the \`Link\` header leads to the next one. Requests in an hour are counted where a tenant has a limit, which \`RateLimit\` and \`RateLimit-Policy\` show. New fields, event types and codes may come at any time: ignore what you do not know.

## Compression

Answers of one kilobyte and more are compressed for clients that accept br or gzip; streams never are, so that each event arrives at once. Attacks that measure compressed sizes (BREACH) need a browser that sends secrets by itself to an address with the attacker’s text in it: a key in a header is never sent by itself, and no answer repeats it.
`;
