import { describe } from '@jest/globals';
import { commandCases } from './conformance/commands.ts';
import { endingCases } from './conformance/endings.ts';
import { isolationCases } from './conformance/isolation.ts';
import { leftOverCases } from './conformance/left-overs.ts';
import { limitCases } from './conformance/limit-cases.ts';
import { linkCases } from './conformance/link-cases.ts';
import { outputCases } from './conformance/output-cases.ts';
import type { Side } from './conformance/side.ts';
import { workspaceCases } from './conformance/workspace-cases.ts';

/** The promises of both adapters of the port. */
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
