import type { Request, Response } from 'express';
import type { Route, RouteAnswer, RouteId, Routes } from '@concierge/contract';
import type { KeyRecord, TenantScope } from '@concierge/tenant';
import type { z } from 'zod';
import type { VisitorCaller, WidgetCaller } from '../widget/widget-caller.ts';

type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

type ParsedBody<Body> = Body extends { readonly kind: 'json'; readonly schema: infer Schema }
  ? Parsed<Schema>
  : Body extends { readonly kind: 'text' }
    ? string
    : Body extends { readonly kind: 'raw' }
      ? Buffer
      : undefined;

type Field<Definition, Name extends string> = Definition extends Readonly<Record<Name, infer Value>> ? Value : undefined;

/** A caller with an API key. */
export interface Caller {
  readonly scope: TenantScope;
  readonly key: KeyRecord;
}

/** The caller, by the route's kind of authentication; the other kinds name no tenant. */
interface Callers {
  readonly key: Caller;
  readonly widget: WidgetCaller;
  readonly visitor: VisitorCaller;
}

export type AnyCaller = Callers[keyof Callers];

/** A request past authentication and validation: what a handler gets. */
export interface Call<Definition extends Route = Route> {
  readonly request: Request;
  readonly response: Response;
  readonly requestId: string;
  readonly caller: Definition['auth'] extends keyof Callers ? Callers[Definition['auth']] : undefined;
  readonly params: Parsed<Field<Definition, 'params'>>;
  readonly query: Parsed<Field<Definition, 'query'>>;
  readonly headers: Parsed<Field<Definition, 'headers'>>;
  readonly body: ParsedBody<Field<Definition, 'body'>>;
}

type AnswerBody<Answer extends RouteAnswer> = Answer extends { readonly json: infer Schema extends z.ZodType }
  ? { readonly json: z.output<Schema> }
  : Answer extends { readonly text: string }
    ? { readonly text: string | Buffer }
    : object;

type Statuses<Definition extends Route> = keyof Definition['answers'] & number;

/** The handler has written its answer itself. */
export const streamed = { kind: 'streamed' } as const;

/** The answer of a handler: one of the statuses of its route, with that status' body; or `streamed`. */
export type Answer<Definition extends Route> =
  | typeof streamed
  | {
      [Status in Statuses<Definition>]: {
        readonly kind: 'answer';
        readonly status: Status;
        readonly headers?: Record<string, string>;
      } & AnswerBody<NonNullable<Definition['answers'][Status]>>;
    }[Statuses<Definition>];

export type Handler<Definition extends Route> = (call: Call<Definition>) => Answer<Definition> | Promise<Answer<Definition>>;

/** One handler for every route: a route without one does not compile. */
export type Handlers = { readonly [Id in RouteId]: Handler<Routes[Id]> };

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
