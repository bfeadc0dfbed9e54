import { describe } from '@jest/globals';
import type { SandboxLimits, Sandboxes } from '../src/index.ts';
import { commandCases } from './conformance/commands.ts';
import { endingCases } from './conformance/endings.ts';
import { isolationCases } from './conformance/isolation.ts';
import { leftOverCases } from './conformance/left-overs.ts';
import { limitCases } from './conformance/limit-cases.ts';
import { linkCases } from './conformance/link-cases.ts';
import { outputCases } from './conformance/output-cases.ts';
import { workspaceCases } from './conformance/workspace-cases.ts';

export interface Side {
  readonly kind: 'docker' | 'bubblewrap';
  /** With a deployment of its own, so that files run in parallel. */
  make(options: { readonly deployment: string; readonly limits?: Partial<SandboxLimits> }): Sandboxes;
}

/** What both sides of the port promise. */
export function describeConformance(side: Side): void {
  describe('runs commands', () => {
    commandCases(side);
    outputCases(side);
  });
  describe('ends commands', () => {
    endingCases(side);
  });
  describe('limits what is used', () => {
    limitCases(side);
  });
  describe('keeps in', () => {
    isolationCases(side);
  });
  describe('shares the workspace', () => {
    workspaceCases(side);
    linkCases(side);
  });
  describe('leaves nothing', () => {
    leftOverCases(side);
  });
}
