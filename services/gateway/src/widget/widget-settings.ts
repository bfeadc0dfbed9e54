import type { Handlers } from '../http/call.ts';

/** The web widget as its owner sets it up. */
export function widgetSettingsHandlers(): Pick<Handlers, 'getWidget' | 'putWidget' | 'rotateWidgetKey' | 'rotateWidgetSecret'> {
  return {
    getWidget: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.widget.view() }),
    putWidget: async ({ caller, body }) => ({ kind: 'answer', status: 200, json: await caller.scope.widget.put(body) }),
    rotateWidgetKey: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.widget.rotateKey() }),
    rotateWidgetSecret: async ({ caller }) => ({ kind: 'answer', status: 201, json: { secret: await caller.scope.widget.rotateSecret() } }),
  };
}
