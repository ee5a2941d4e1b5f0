// What `bench_browser.py` watches in the page: when the frame that first shows an answer was painted.

window.benchWatch = () => {
    const bench = document.querySelector('.tbx');
    const text = path => [...bench.querySelectorAll(path)].map(each => each.textContent).join('\n');
    const seen = {
        chips: () => text('.tbx-chips'),
        text: () => text('[data-stage=tile] .tbx-sheet'),
        resources: () => /\d+ registers/.test(text('.tbx-chips')),
        sass: () => /\d+ lines?/.test(text('[data-stage=sass] .tbx-facts'))
    };
    // An answer is another text than before: one position's is never taken for another's. Registers and the
    // lines of SASS leave with the position before and come with the new one's; rows alone do not tell, as a
    // pane of another height draws other rows of the same text.
    const again = () => {
        let gone = false;
        return says => { gone ||= !says; return gone && says; };
    };
    const came = {
        chips: says => says !== before.chips,
        text: says => says !== before.text,
        resources: again(),
        sass: again()
    };
    const before = Object.fromEntries(Object.entries(seen).map(([name, read]) => [name, read()]));
    const out = { began: 0, times: {}, ended: false };
    window.addEventListener('keydown', event => { out.began = event.timeStamp; }, { capture: true, once: true });
    const painted = called => {
        const channel = new MessageChannel();
        channel.port1.onmessage = called;
        channel.port2.postMessage(0);
    };
    const look = () => {
        for (const [name, read] of Object.entries(seen)) {
            if (out.times[name] === undefined && came[name](read())) {
                out.times[name] = -1;
                painted(() => { out.times[name] = performance.now() - out.began; });
            }
        }
        if (!out.ended) {
            requestAnimationFrame(look);
        }
    };
    requestAnimationFrame(look);
    window.benchSeen = out;
};

// Whether everything of the position that the focused slider shows stands, SASS aside.
window.benchSettled = () => {
    const bench = document.querySelector('.tbx');
    const value = document.activeElement.getAttribute('aria-valuetext').split(',')[0];
    const tile = bench.querySelector('[data-stage=tile] .tbx-sheet').textContent.replaceAll(' ', '');
    return bench.querySelector('.tbx-status').textContent.includes('up to date')
        && /\d+ registers/.test(bench.querySelector('.tbx-chips').textContent)
        && tile.includes(`(${value},32)`);
};
