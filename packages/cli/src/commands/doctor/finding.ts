export interface Finding {
  readonly status: 'ok' | 'warning' | 'failed';
  readonly detail: string;
}

export const ok = (detail: string): Finding => ({ status: 'ok', detail });
export const warning = (detail: string): Finding => ({ status: 'warning', detail });
export const failed = (detail: string): Finding => ({ status: 'failed', detail });
