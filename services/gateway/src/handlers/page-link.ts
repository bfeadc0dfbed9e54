/** The `Link` header of a list (RFC 8288): the same query, for the next page. Empty on the last page. */
export function pageLink(
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  nextCursor: string | null,
): Record<string, string> {
  if (nextCursor === null) return {};
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, cursor: nextCursor }))
    if (value !== undefined) parameters.set(name, String(value));
  return { Link: `<${path}?${parameters.toString()}>; rel="next"` };
}
