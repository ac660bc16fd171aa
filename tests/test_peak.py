"""Memory counted while tensors are made and freed: sums worked out by hand."""

import threading

import torch

from posviz.peak import Peak, peak

KILO = torch.ones(250)  # 1000 bytes


def test_a_chain_holds_two_at_a_time():
    def chain():
        x = KILO + 1
        for _ in range(5):
            x = x * 2  # the old x is still there while the new one is made
        return x

    assert peak(chain) == 2000


def test_all_of_what_stays_counts():
    def kept():
        return [KILO + n for n in range(5)]

    assert peak(kept) == 5000


def test_views_and_changes_in_place_are_no_memory():
    def same():
        x = KILO + 1
        x += 1
        return x.view(25, 10).T[3:].expand(7, 7, 25)

    assert peak(same) == 1000
    assert peak(lambda: KILO.view(5, 50)) == 0, "what was there before"


def test_freed_memory_is_given_back():
    with torch.no_grad(), Peak() as counted:
        x = KILO + 1
        assert counted.now == 1000
        del x
        assert counted.now == 0
        y = KILO.double()
        assert (counted.now, counted.most) == (2000, 2000)
    del y
    assert counted.most == 2000


def test_other_threads_are_not_counted():
    with torch.no_grad(), Peak() as counted:
        other = threading.Thread(target=lambda: torch.ones(10_000) + 1)
        other.start()
        other.join()
    assert counted.most == 0
